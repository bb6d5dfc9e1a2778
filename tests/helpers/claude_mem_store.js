// A database of claude-mem, made by its own SessionStore: bun claude_mem_store.js STORE.js DATABASE
const [, , code, path] = process.argv;
const { SessionStore } = require(code);
const store = new SessionStore(path);
const at = 1800000000000;

function observe(memory, project, type, number, extra) {
  return store.storeObservation(memory, project, {
    type, title: `${type} ${number}`, subtitle: "in short", narrative: `The walrus ${type} number ${number}.`,
    facts: [`fact ${number}`, "cents are whole — 日本"], concepts: ["gotcha", "how-it-works"],
    files_read: ["src/a.py"], files_modified: ["src/b.py"], ...extra,
  }, number, 0, at + number * 1000);
}

for (const [name, project] of [["11111111-aaaa", "api"], ["22222222-bbbb", "web"]]) {
  const id = store.createSDKSession(name, project, "why is the sum off by a cent?");
  const memory = `memory-${name}`;
  store.ensureMemorySessionIdRegistered(id, memory);
  store.saveUserPrompt(name, 1, "why is the sum off by a cent?", id);
  store.saveUserPrompt(name, 2, "and now release it", id);
  let number = 1;
  for (const type of ["decision", "bugfix", "feature", "refactor", "discovery", "change"]) {
    observe(memory, project, type, number++);
  }
  observe(memory, project, "security_note", number++, { narrative: null, facts: [], subtitle: null });
  for (const turn of [1, 2]) {
    store.storeSummary(memory, project, {
      request: `request ${turn}`, investigated: "invoice.py", learned: "It is rounded twice",
      completed: "Once now", next_steps: "Release", notes: null,
    }, turn, 0, at + turn * 60000);
  }
  store.markSessionCompleted(id);
}
const count = (table) => store.db.query(`SELECT count(*) AS n FROM ${table}`).get().n;
console.log(JSON.stringify(Object.fromEntries(
  ["sdk_sessions", "user_prompts", "observations", "session_summaries"].map((table) => [table, count(table)]))));
store.close();
