"""The life of the one SQLite file.

connection   opens it and applies migrations/; transactions; what SQLite's errors are to other rooms
backup       copies of it, made while others write
recovery     restores one of them, because somebody asks for it or because the file is damaged
rescue       takes what can still be read of a damaged file into a sound one
pages        reads the rows of a damaged file
disk         says what is wrong with a disk that is full, or a folder that cannot be written
older        knows the stores of backstory 0.1, which are refused and never changed
swap         puts another file in its place, while no process has it open
"""
