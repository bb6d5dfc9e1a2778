from backstory.surfaces.cli.main import main

main()
