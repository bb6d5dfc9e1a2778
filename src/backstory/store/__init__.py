"""The only SQL there is: `open.py` opens the store, `file/` is the file's life, and every other module is a
family of tables, or what is asked of several of them. Functions take a connection and return values.
"""
