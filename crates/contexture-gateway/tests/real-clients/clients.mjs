// The clients: where they come from, how they are started, and how each is pointed straight at a provider.
//
// `run` is the name for `contexture run`; `set` points a client that `contexture run` does not know. `straight` is what
// does the same without the gateway. `own` is an address that the user has set. `headers` must reach the provider byte for byte. A budget is what instructions and tools take, and room for about a third of the task.

const task = "Do the task.";
const anthropic = { ANTHROPIC_API_KEY: "sk-ant-made-up" };
const openai = { OPENAI_API_KEY: "sk-made-up" };

const opencode = (url) => JSON.stringify({ provider: { anthropic: { options: { baseURL: `${url}/anthropic/v1` } }, openai: { options: { baseURL: `${url}/openai` } } } });
const pi = (url) => `export default function (pi) { pi.registerProvider("anthropic", { baseUrl: "${url}/anthropic" }); pi.registerProvider("openai", { baseUrl: "${url}/openai" }); }`;
const goose = { GOOSE_DISABLE_KEYRING: "1", GOOSE_MODE: "auto", GOOSE_TELEMETRY_ENABLED: "false" };
const nanocoder = (url) => JSON.stringify([{ name: "mine", baseUrl: `${url}/openai`, apiKey: "sk-made-up", models: ["gpt-5.1"] }]);
const qwen = ["--yolo", "--auth-type"];
const geminiSettings = { "home/.gemini/settings.json": JSON.stringify({ security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } }, privacy: { usageStatisticsEnabled: false } }) };
const mini = { MSWEA_CONFIGURED: "true", MSWEA_COST_TRACKING: "ignore_errors", MSWEA_SILENT_STARTUP: "1", LITELLM_LOCAL_MODEL_COST_MAP: "True" };

// A login that nobody gave, for clients that read theirs from a file.
const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const account = { "https://api.openai.com/auth": { chatgpt_account_id: "account-made-up", chatgpt_plan_type: "plus", chatgpt_user_id: "user-made-up" }, email: "nobody@example.com", exp: 4102444800 };
const token = `${part({ alg: "none", typ: "JWT" })}.${part(account)}.bWFkZS11cA`;
const login = JSON.stringify({ auth_mode: "chatgpt", OPENAI_API_KEY: null, tokens: { id_token: token, access_token: token, refresh_token: "made-up", account_id: "account-made-up" }, last_refresh: "2099-01-01T00:00:00Z" });

// The official libraries, with a loop of our own around them.
const library = (name, program, formats) =>
  formats.flatMap((format) =>
    [true, false].map((streams) => {
      const variable = format === "messages" ? "ANTHROPIC_BASE_URL" : "OPENAI_BASE_URL";
      const base = format === "messages" ? "/anthropic" : "/openai/v1";
      return {
        name: `${name}-${format}${streams ? "-streaming" : ""}`,
        command: program[0],
        args: [...program.slice(1), format, String(streams), task],
        env: { ...anthropic, ...openai },
        set: { [variable]: `{url}${base}` },
        straight: (url) => ({ env: { [variable]: `${url}${base}` } }),
        budget: 14000,
      };
    }),
  );

export const clients = (here) => [
  { name: "claude", npm: "@anthropic-ai/claude-code", run: "claude", command: "claude", args: ["-p", "--dangerously-skip-permissions", task], env: { ...anthropic, IS_SANDBOX: "1" }, straight: (url) => ({ env: { ANTHROPIC_BASE_URL: `${url}/anthropic`, ENABLE_TOOL_SEARCH: "true" } }), budget: 40000 },
  { name: "codex", npm: "@openai/codex", run: "codex", command: "codex", args: ["exec", "-m", "gpt-5.1", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", task], env: openai, straight: (url) => ({ before: ["-c", `openai_base_url="${url}/openai"`] }), budget: 26000 },
  { name: "codex-default", npm: "@openai/codex", run: "codex", command: "codex", args: ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", task], env: openai, straight: (url) => ({ before: ["-c", `openai_base_url="${url}/openai"`] }), budget: 30000 },
  { name: "codex-login", npm: "@openai/codex", run: "codex", command: "codex", args: ["exec", "-m", "gpt-5.1", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", task], env: {}, files: { "home/.codex/auth.json": login }, headers: { authorization: `Bearer ${token}`, "chatgpt-account-id": "account-made-up" }, straight: (url) => ({ before: ["-c", `openai_base_url="${url}/openai"`] }), budget: 26000 },
  ...["anthropic", "openai"].map((provider) => ({ name: `pi-${provider}`, npm: "@earendil-works/pi-coding-agent", run: "pi", command: "pi", args: ["-p", "--provider", provider, "--model", provider === "openai" ? "gpt-5.1" : "claude-sonnet-4-5", task], env: { ...anthropic, ...openai }, straight: (url) => ({ before: ["-e", "./point.mjs"], files: { "point.mjs": pi(url) } }), budget: 14000 })),
  ...["anthropic/claude-sonnet-4-5", "openai/gpt-5.1"].map((model) => ({ name: `opencode-${model.split("/")[0]}`, npm: "opencode-ai", run: "opencode", command: "opencode", args: ["run", "-m", model, task], env: { ...anthropic, ...openai }, straight: (url) => ({ env: { OPENCODE_CONFIG_CONTENT: opencode(url) } }), budget: 26000 })),
  ...["gemini-2.5-pro", "gemini-3.8-flash"].map((model) => ({ name: model, npm: "@google/gemini-cli", run: "gemini", command: "gemini", args: ["--yolo", "-m", model, "-p", task], env: { GEMINI_API_KEY: "made-up" }, files: geminiSettings, straight: (url) => ({ env: { GOOGLE_GEMINI_BASE_URL: url } }), budget: 24000 })),
  { name: "qwen-openai", npm: "@qwen-code/qwen-code", run: "qwen", command: "qwen", args: [...qwen, "openai", task], env: { ...openai, OPENAI_MODEL: "qwen3-coder-plus" }, straight: (url) => ({ env: { OPENAI_BASE_URL: `${url}/openai` } }), budget: 36000 },
  { name: "qwen-anthropic", npm: "@qwen-code/qwen-code", run: "qwen", command: "qwen", args: [...qwen, "anthropic", task], env: { ...anthropic, ANTHROPIC_MODEL: "claude-sonnet-4-5" }, straight: (url) => ({ env: { ANTHROPIC_BASE_URL: `${url}/anthropic` } }), budget: 36000 },
  ...[["openai", "completions"], ["openai", "responses"], ["anthropic", "messages"]].map(([type, wire]) => ({ name: `copilot-${wire}`, npm: "@github/copilot", run: "copilot", command: "copilot", args: ["-p", task, "--allow-all-tools"], env: { COPILOT_PROVIDER_TYPE: type, ...(type === "openai" && { COPILOT_PROVIDER_WIRE_API: wire }), COPILOT_PROVIDER_API_KEY: "sk-made-up", COPILOT_MODEL: type === "openai" ? "gpt-5.1" : "claude-sonnet-4-5" }, own: (url) => ({ COPILOT_PROVIDER_BASE_URL: type === "openai" ? `${url}/v1` : url }), straight: () => ({}), budget: 32000 })),
  ...[["openai", "gpt-5.1"], ["anthropic", "claude-sonnet-4-5"]].map(([provider, model]) => ({ name: `goose-${provider}`, npm: "@aaif/goose-binary-linux-x64", file: "node_modules/@aaif/goose-binary-linux-x64/bin/goose", run: "goose", command: "goose", args: ["run", "--no-session", "-t", task], env: { ...anthropic, ...openai, ...goose, GOOSE_PROVIDER: provider, GOOSE_MODEL: model }, straight: (url) => ({ env: { OPENAI_HOST: url, ANTHROPIC_HOST: url } }), budget: 18000 })),
  { name: "kimi", pip: ["kimi-cli==1.39.*"], run: "kimi", command: "kimi", args: ["--print", "--yolo", "-p", task], env: { KIMI_API_KEY: "sk-made-up", KIMI_MODEL_NAME: "kimi-k2", KIMI_MODEL_MAX_CONTEXT_SIZE: "200000" }, straight: (url) => ({ env: { KIMI_BASE_URL: `${url}/openai` } }), budget: 26000 },
  { name: "kimi-code", npm: "@moonshot-ai/kimi-code", run: "kimi-code", command: "kimi", args: ["-p", task], env: { KIMI_MODEL_NAME: "kimi-k2", KIMI_MODEL_API_KEY: "sk-made-up", KIMI_MODEL_MAX_CONTEXT_SIZE: "200000" }, own: (url) => ({ KIMI_MODEL_BASE_URL: `${url}/openai` }), straight: () => ({}), budget: 40000 },
  { name: "nanocoder", npm: "@nanocollective/nanocoder", command: "nanocoder", args: ["--trust-directory", "--mode", "yolo", "run", task], env: {}, set: { NANOCODER_PROVIDERS: nanocoder("{url}") }, straight: (url) => ({ env: { NANOCODER_PROVIDERS: nanocoder(url) } }), budget: 12000 },
  { name: "grok", npm: "@vibe-kit/grok-cli", run: "grok", command: "grok", args: ["-p", task], env: { GROK_API_KEY: "sk-made-up" }, own: (url) => ({ GROK_BASE_URL: `${url}/openai` }), straight: () => ({}), budget: 14000 },
  ...["openai/gpt-5.1", "anthropic/claude-sonnet-4-5"].map((model) => ({ name: `mini-${model.split("/")[0]}`, pip: ["mini-swe-agent", "mcp"], run: "mini", command: "mini", args: ["-y", "--exit-immediately", "-m", model, "-t", task], end: "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo 'The task is done.'", env: { ...anthropic, ...openai, ...mini }, straight: (url) => ({ env: { OPENAI_API_BASE: `${url}/openai`, ANTHROPIC_API_BASE: `${url}/anthropic` } }), budget: 12000 })),
  ...["openai/gpt-5.1", "anthropic/claude-sonnet-4-5"].map((model) => ({ name: `openhands-${model.split("/")[0]}`, pip: ["openhands-sdk", "openhands-tools"], command: "python", args: [`${here}/with_openhands.py`, model, task], env: { LLM_API_KEY: "sk-made-up", LITELLM_LOCAL_MODEL_COST_MAP: "True" }, set: { LLM_BASE_URL: model.startsWith("openai") ? "{url}/openai" : "{url}/anthropic" }, straight: (url) => ({ env: { LLM_BASE_URL: model.startsWith("openai") ? `${url}/openai` : `${url}/anthropic` } }), budget: 22000 })),
  ...library("python", ["python", `${here}/library.py`], ["messages", "chat", "responses"]).map((client) => ({ ...client, pip: ["openai", "anthropic"] })),
  ...library("typescript", ["node", `${here}/library.mjs`], ["messages", "chat", "responses"]).map((client) => ({ ...client, npm: "openai @anthropic-ai/sdk" })),
];
