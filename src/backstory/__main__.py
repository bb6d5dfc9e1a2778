import sys


def main() -> None:
    if sys.argv[1:] == ["statusline"]:  # once a turn: what the other commands load takes longer than it
        from backstory.surfaces import statusline

        return statusline.main()
    from backstory.surfaces.cli.main import main as commands

    commands()


if __name__ == "__main__":
    main()
