"""backstory: a memory for Claude Code.

Nothing is imported here: a hook imports this package on its way to one module, and pays for what it loads.
"""
