"""The rules of the `local` synthesizer: pure functions from what was said and done to what it came to.

They look for few things and want to be sure of them: a memory full of chaff is worse than a thin one.
"""
