"""One module an agent, the only one that knows what the agent calls things, and one for its transcripts.

What a client offers to the rest:

    read(payload)            the canonical event of a payload, or BadPayload        capture/event.py
    may_change_files(raw)    whether a payload is worth parsing for changed files   capture/changes.py
    session_id(env), project_folder(env)                                            hooks and servers
    is_sent_on(payload), block(reason), spawn(agent, prompt)                        the end of a turn
    shell_use(...)           a payload to try the hooks out with                    doctor

There is one so far, and its callers import it by name.
"""
