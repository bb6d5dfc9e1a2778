"""Why a service restarts every night: manifests and logs in a folder without git."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, bash, read, say, together, turn

ROOT = "/home/dev/cluster"

API = """
kind: Deployment
name: catalog-api
replicas: 2
container:
  image: registry.example.org/catalog-api:4.8.1
  resources:
    requests: {cpu: 200m, memory: 192Mi}
    limits: {cpu: "1", memory: 384Mi}
  livenessProbe:
    path: /healthz
    periodSeconds: 10
    timeoutSeconds: 1
    failureThreshold: 3
"""
FEED = """
kind: CronJob
name: price-feed
schedule: "10 3 * * *"
container:
  image: registry.example.org/tools:12
  command: [sh, -c, "curl -fsS http://catalog-api/export?format=xml -o /out/feed.xml"]
"""
BACKUP = """
kind: CronJob
name: db-backup
schedule: "0 3 * * *"
container:
  image: registry.example.org/tools:12
  command: [sh, -c, "pg_dump $DATABASE_URL | gzip > /out/catalog.sql.gz"]
"""
EVENTS = """
2026-05-16T03:00:01Z CronJob/db-backup Started
2026-05-16T03:04:40Z CronJob/db-backup Completed
2026-05-16T03:10:02Z CronJob/price-feed Started
2026-05-16T03:10:31Z Pod/catalog-api-7d9c-x2x Killed reason=OOMKilled exitCode=137
2026-05-16T03:10:32Z CronJob/price-feed Failed exitCode=18
2026-05-16T03:10:44Z CronJob/price-feed Started attempt=2
2026-05-16T03:11:12Z Pod/catalog-api-7d9c-k8p Killed reason=OOMKilled exitCode=137
2026-05-17T03:00:01Z CronJob/db-backup Started
2026-05-17T03:04:52Z CronJob/db-backup Completed
2026-05-17T03:10:01Z CronJob/price-feed Started
2026-05-17T03:10:29Z Pod/catalog-api-7d9c-x2x Killed reason=OOMKilled exitCode=137
2026-05-17T14:22:10Z Pod/search-55b-qq1 Unhealthy readiness probe failed
2026-05-18T03:00:02Z CronJob/db-backup Started
2026-05-18T03:04:47Z CronJob/db-backup Completed
2026-05-18T03:10:01Z CronJob/price-feed Started
2026-05-18T03:10:33Z Pod/catalog-api-7d9c-x2x Killed reason=OOMKilled exitCode=137
"""
MEMORY = """
time,pod,mib
02:50,catalog-api-7d9c-x2x,171
03:00,catalog-api-7d9c-x2x,173
03:05,catalog-api-7d9c-x2x,172
03:10:10,catalog-api-7d9c-x2x,238
03:10:20,catalog-api-7d9c-x2x,331
03:10:30,catalog-api-7d9c-x2x,383
03:15,catalog-api-7d9c-x2x,88
"""
CHECK = """#!/bin/sh
# Every container needs a memory limit and an image with a tag.
bad=0
for file in manifests/*.yaml; do
  grep -q 'image: .*:[0-9]' "$file" || { echo "$file: image without a tag"; bad=1; }
  grep -q 'limits:' "$file" || { echo "$file: no limits"; bad=1; }
done
exit $bad
"""

SCENARIO = Scenario(
    project="cluster",
    began="2026-05-18T08:20:00",
    git=False,
    files={
        "manifests/catalog-api.yaml": API,
        "manifests/price-feed.yaml": FEED,
        "manifests/db-backup.yaml": BACKUP,
        "logs/events.log": EVENTS,
        "logs/memory.csv": MEMORY,
        "check.sh": CHECK,
    },
    turns=(
        turn(
            """
catalog-api restarts every night shortly after 3. I always assumed it was the database backup slowing everything down so that the health check fails. Can you verify that? Logs of the last three nights are in logs/. Don't change anything yet
""",
            bash("ls -R . && cat manifests/*.yaml", "Look around"),
            together(read(f"{ROOT}/logs/events.log"), read(f"{ROOT}/logs/memory.csv")),
            bash(
                "grep -c Unhealthy.*catalog-api logs/events.log", "Any failed health checks of catalog-api?"
            ),
            bash("grep -A1 price-feed logs/events.log", "What follows the feed"),
            bash("tail -50 logs/catalog-api.log", "Read the log of the service"),
            say(
                """It isn't the backup. The backup is done by 03:05 every night, memory and health checks are unremarkable until then, and there is not a single failed liveness probe of catalog-api in the log.

What kills it is the `price-feed` job at 03:10. It fetches `/export?format=xml`, and half a minute later the pod that serves it is OOMKilled: memory goes from 172 MiB to the limit of 384 MiB in 30 seconds. On the 16th the job tried again and took the second pod down as well.

My guess is that the export builds the whole XML in memory before sending it, but there is no log of catalog-api itself in the folder, so I can't see that part."""
            ),
        ),
        turn(
            "huh, ok, that explains why the feed is sometimes a day old too. does check.sh complain about any of this?",
            bash("sh check.sh", "Run the check"),
            say(
                "Only about something else: `price-feed.yaml` and `db-backup.yaml` have no limits. It cannot see that a limit is too small for what the service does."
            ),
        ),
        turn(
            "right. I thought about just raising the limit to 1Gi but the catalog keeps growing, so we'd be back here in a few months. We'll go for streaming the export in catalog-api instead, and leave the limit where it is. I'll open a ticket with the api team",
            say(
                "Sounds right to me. For the ticket: a streamed export needs about the same memory whatever the size of the catalog, and the job's `curl` can stay as it is. Until then the nightly restart will go on."
            ),
        ),
    ),
)
