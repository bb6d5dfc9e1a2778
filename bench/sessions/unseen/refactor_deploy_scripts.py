"""Three deploy scripts become one: golden output first, a region that is unlike the others, an idea taken back."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, bash, edit, read, say, turn, write

ROOT = "/home/dev/harbor-deploy"


def script(region: str, zone: str, bucket: str, *, cdn: str) -> str:
    purge = (
        f"run aws cloudfront create-invalidation --distribution-id {cdn} --paths '/*'\n"
        if cdn
        else "# no cdn here\n"
    )
    return (
        f"#!/bin/sh\n# Deploy the web app to {region}.\nset -eu\n\n"
        'run() {\n\tif [ "${DRY_RUN:-}" ]; then echo "$*"; else "$@"; fi\n}\n\n'
        f"run aws --region {zone} s3 sync build/ s3://{bucket} --delete\n"
        f"run aws --region {zone} s3 cp build/index.html s3://{bucket}/index.html --cache-control no-cache\n"
        f"{purge}"
        f"run curl -fsS https://{region}.harbor.example/healthz\n"
    )


CI = """
deploy:
  image: busybox-aws:3
  script:
    - ./deploy-eu.sh
    - ./deploy-us.sh
    - ./deploy-ap.sh
"""
CHECK = """
#!/bin/sh
# Deploying must do what is written down in golden/.
bad=0
for region in eu us ap; do
	if DRY_RUN=1 ./deploy.sh $region | diff golden/$region.txt - ; then
		echo "same: $region"
	else
		echo "DIFFERS: $region"; bad=1
	fi
done
exit $bad
"""
DEPLOY = """
#!/bin/sh
# Deploy the web app: ./deploy.sh eu|us|ap
set -eu

region=$1
. "./regions/$region.env"

run() {
	if [ "${DRY_RUN:-}" ]; then echo "$*"; else "$@"; fi
}

run aws --region "$ZONE" s3 sync build/ "s3://harbor-$region-web" --delete
run aws --region "$ZONE" s3 cp build/index.html "s3://harbor-$region-web/index.html" --cache-control no-cache
run aws cloudfront create-invalidation --distribution-id "$CDN" --paths '/*'
run curl -fsS "https://$region.harbor.example/healthz"
"""

SCENARIO = Scenario(
    project="harbor-deploy",
    began="2026-01-22T07:58:00",
    first_commit="deploy scripts",
    files={
        "deploy-eu.sh": script("eu", "eu-west-1", "harbor-eu-web", cdn="E2EU7"),
        "deploy-us.sh": script("us", "us-east-1", "harbor-us-web", cdn="E9US1"),
        "deploy-ap.sh": script("ap", "ap-southeast-2", "harbor-apac-web", cdn=""),
        "ci.yml": CI,
    },
    turns=(
        turn(
            "3 copies of the same deploy script are driving me nuts. fold them into one `deploy.sh <region>`. what it runs must stay "
            "byte for byte the same. plain posix sh only pls, the runner image is busybox, there's no bash in it",
            bash("ls; wc -l *.sh; cat ci.yml", "Look around"),
            read(f"{ROOT}/deploy-eu.sh"),
            bash(
                "diff deploy-eu.sh deploy-us.sh; diff deploy-eu.sh deploy-ap.sh; true", "Compare the copies"
            ),
            bash(
                "mkdir -p golden && for r in eu us ap; do DRY_RUN=1 ./deploy-$r.sh > golden/$r.txt; done; wc -l golden/*",
                "Write down what the old scripts do",
            ),
            write(f"{ROOT}/deploy.sh", DEPLOY.lstrip()),
            bash(
                "mkdir -p regions && printf 'ZONE=eu-west-1\\nCDN=E2EU7\\n' > regions/eu.env && printf 'ZONE=us-east-1\\nCDN=E9US1\\n' > regions/us.env"
                " && printf 'ZONE=ap-southeast-2\\nCDN=\\n' > regions/ap.env && chmod +x deploy.sh",
                "One file of settings for each region",
            ),
            write(f"{ROOT}/check.sh", CHECK.lstrip()),
            bash("sh check.sh", "Compare with the golden output"),
            bash("git add -A && git commit -q -m WIP", "Keep a checkpoint"),
            edit(f"{ROOT}/deploy.sh", "harbor-$region-web", "$BUCKET", everywhere=True),
            edit(
                f"{ROOT}/deploy.sh",
                "run aws cloudfront create-invalidation --distribution-id \"$CDN\" --paths '/*'\n",
                'if [ "$CDN" ]; then\n\trun aws cloudfront create-invalidation --distribution-id "$CDN" --paths \'/*\'\nfi\n',
            ),
            bash(
                "echo BUCKET=harbor-eu-web >> regions/eu.env; echo BUCKET=harbor-us-web >> regions/us.env; echo BUCKET=harbor-apac-web >> regions/ap.env; sh check.sh",
                "Give each region its bucket and compare again",
            ),
            bash(
                "git rm -q deploy-eu.sh deploy-us.sh deploy-ap.sh && sed -i -E 's#deploy-(eu|us|ap).sh#deploy.sh \\1#' ci.yml && cat ci.yml",
                "Remove the copies, point CI at the new script",
            ),
            bash(
                "git add -A && git commit -q --amend -m 'One deploy script, regions in env files' && git log --oneline",
                "Commit",
            ),
            say(
                "The three scripts are one now: `deploy.sh <region>` reads zone, bucket and CDN from `regions/<region>.env`, CI calls it three times, "
                "and `check.sh` compares the dry run with the recorded output of the old scripts. All three are identical.\n\n"
                "ap turned out to be different from the others in two ways: its bucket is `harbor-apac-web` (not `harbor-ap-web`), and it never "
                "invalidates a CDN. I kept both. Is the missing invalidation on purpose?"
            ),
        ),
        turn(
            "yes ap sits behind fastly, they purge on their side. leave it. "
            "should we move the whole thing to terraform some day?",
            say(
                "Terraform could own the buckets and distributions, but syncing files is not really its job, so you would still have a script like this "
                "one. I'd wait until you need a fourth region. Anything else for today?"
            ),
        ),
        turn(
            "add set -x so i see whats going on in ci",
            edit(f"{ROOT}/deploy.sh", "set -eu\n", "set -eux\n"),
            bash("DRY_RUN=1 ./deploy.sh eu 2>&1 | head -20", "See what it looks like"),
            say(
                "Added, every command is traced to stderr now. It prints each command twice in a dry run; is that OK?"
            ),
        ),
        turn(
            "ugh no thats way too noisy, take it out again",
            bash("git checkout -q deploy.sh && sh check.sh && git status --short", "Undo"),
            say("It's out again, nothing changed against the last commit."),
        ),
    ),
)
