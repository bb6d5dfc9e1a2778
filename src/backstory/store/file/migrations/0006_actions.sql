-- What a tool use did, whatever the agent calls its tools: one of the actions in clients/canonical.py.

ALTER TABLE observation_queue ADD COLUMN action TEXT
CHECK (action IN ('read', 'edit', 'write', 'shell', 'search', 'web', 'ask', 'plan', 'agent', 'mcp', 'other'));
ALTER TABLE memories ADD COLUMN action TEXT       -- of a trace
CHECK (action IN ('read', 'edit', 'write', 'shell', 'search', 'web', 'ask', 'plan', 'agent', 'mcp', 'other'));

-- Until now everything came from Claude Code.
CREATE TEMPORARY TABLE tool_actions (tool TEXT PRIMARY KEY, action TEXT NOT NULL);
INSERT INTO tool_actions VALUES
('Read', 'read'), ('NotebookRead', 'read'), ('Edit', 'edit'), ('MultiEdit', 'edit'), ('NotebookEdit', 'edit'),
('Write', 'write'), ('Bash', 'shell'), ('Grep', 'search'), ('Glob', 'search'), ('ListMcpResourcesTool', 'search'),
('WebFetch', 'web'), ('WebSearch', 'web'), ('AskUserQuestion', 'ask'), ('EnterPlanMode', 'plan'),
('ExitPlanMode', 'plan'), ('TodoWrite', 'plan'), ('TaskCreate', 'plan'), ('TaskUpdate', 'plan'),
('Agent', 'agent'), ('Task', 'agent');

UPDATE observation_queue SET action = coalesce(
    (SELECT t.action FROM temp.tool_actions t WHERE t.tool = tool_name),
    iif(tool_name GLOB 'mcp__*', 'mcp', 'other'))
WHERE tool_name NOT IN ('PROMPT', 'COMPACT', 'CHECKPOINT', 'FINALIZE');

-- The first line of a trace is `Tool: Edit`.
UPDATE memories SET action = coalesce(
    (SELECT t.action FROM temp.tool_actions t WHERE t.tool = substr(content, 7, instr(content, char(10)) - 7)),
    iif(content GLOB 'Tool: mcp__*', 'mcp', 'other'))
WHERE kind = 'tool';

-- The same for traces that were archived: a restored one comes back with all its columns.
UPDATE archived_memories SET memory = json_set(memory, '$.action', coalesce(
    (SELECT t.action FROM temp.tool_actions t
     WHERE t.tool = substr(memory ->> 'content', 7, instr(memory ->> 'content', char(10)) - 7)),
    iif(memory ->> 'content' GLOB 'Tool: mcp__*', 'mcp', 'other')))
WHERE memory ->> 'kind' = 'tool';

DROP TABLE temp.tool_actions;

-- What waits or is looked back at, in canonical names. A quote inside a text has a backslash before it, so these
-- names with both their quotes and a colon are keys and nothing else.
UPDATE observation_queue SET tool_input =
    replace(replace(tool_input, '"file_path":', '"path":'), '"notebook_path":', '"path":')
WHERE action IN ('read', 'edit', 'write');
UPDATE observation_queue SET tool_input =
    replace(replace(replace(tool_input, '"old_string":', '"old":'), '"new_string":', '"new":'), '"new_source":', '"content":')
WHERE action = 'edit';
UPDATE observation_queue SET tool_output = json_remove(
    json_set(tool_output, '$.changed', json(tool_output -> '$.bashEditDiff.changedFiles')),
    '$.bashEditDiff.changedFiles')
WHERE action = 'shell' AND json_type(tool_output, '$.bashEditDiff.changedFiles') = 'array';
UPDATE observation_queue SET tool_output = replace(replace(replace(
    tool_output, '"stdout":', '"output":'), '"stderr":', '"errors":'), '"bashEditDiff":', '"diff":')
WHERE action = 'shell';
UPDATE observation_queue SET tool_output = json_set(tool_output, '$.created', json('true'))
WHERE action = 'write' AND json_type(tool_output) = 'object' AND tool_output ->> '$.type' = 'create';
UPDATE observation_queue SET tool_output =
    replace(replace(json_patch(json_remove(tool_output, '$.file'), tool_output -> '$.file'),
        '"filePath":', '"path":'), '"numLines":', '"lines":')
WHERE action = 'read' AND json_type(tool_output, '$.file') = 'object';
UPDATE observation_queue SET tool_output = replace(tool_output, '"last_assistant_message":', '"last_message":')
WHERE tool_name = 'FINALIZE';
