from recollect.surfaces.cli.main import main

main()
