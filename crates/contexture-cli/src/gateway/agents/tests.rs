//! Tests of the table of agents.

use super::*;
use contexture_gateway::provider::upstream::ANTHROPIC;

const URL: &str = "http://127.0.0.1:4711/0123456789abcdef0123456789abcdef";

/// A home and a working directory with files, and variables.
struct Place {
    root: tempfile::TempDir,
    variables: BTreeMap<String, String>,
    arguments: Vec<String>,
}

impl Place {
    fn new(files: &[(&str, &str)], variables: &[(&str, &str)], arguments: &[&str]) -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("home")).unwrap();
        fs::create_dir_all(root.path().join("work/.git")).unwrap();
        fs::create_dir_all(root.path().join("work/deep")).unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut own: BTreeMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        own.insert("HOME".to_owned(), root.path().join("home").display().to_string());
        Self { root, variables: own, arguments: arguments.iter().map(|text| (*text).to_owned()).collect() }
    }

    fn with<T>(&self, work: impl FnOnce(&Surroundings<'_>) -> T) -> T {
        let directory = self.root.path().join("work/deep");
        let variable = |name: &str| self.variables.get(name).cloned();
        work(&Surroundings { variable: &variable, directory: &directory, arguments: &self.arguments })
    }
}

type Pairs<'a> = &'a [(&'a str, &'a str)];

/// Checks where requests go: `(anthropic, openai)`.
#[track_caller]
fn check(agent: &str, files: Pairs<'_>, variables: Pairs<'_>, expected: (&str, &str)) {
    let place = Place::new(files, variables, &[]);
    let found = place.with(|around| Agent::named(agent).destination(Upstreams::default(), around)).unwrap();
    let usual = Upstreams::default();
    let or = |text: &str, usual: String| if text.is_empty() { usual } else { text.to_owned() };
    let expected = (or(expected.0, usual.anthropic), or(expected.1, usual.openai));
    assert_eq!((found.upstreams.anthropic, found.upstreams.openai), expected, "{agent} {files:?} {variables:?}");
}

/// Checks that an agent is refused with a sentence that has some words.
#[track_caller]
fn check_refused(agent: &str, files: Pairs<'_>, variables: Pairs<'_>, arguments: &[&str], words: &str) {
    let place = Place::new(files, variables, arguments);
    let found = place.with(|around| Agent::named(agent).destination(Upstreams::default(), around));
    let failure = found.expect_err(agent);
    assert!(failure.sentence().contains(words) && failure.said_hint().is_some(), "{}", failure.sentence());
}

#[test]
fn every_agent_of_the_table_is_pointed_at_the_gateway_and_no_argument_has_the_address() {
    for agent in known() {
        for is_beaten in [false, true] {
            let place = Place::new(&[], &[], &[]);
            let destination = Destination { upstreams: Upstreams::default(), is_beaten, doubts: Vec::new() };
            let pointed = place.with(|around| agent.pointed_at(URL, &destination, around)).unwrap();
            let mut told = format!("{:?}", pointed.set);
            for path in pointed._files.paths() {
                #[cfg(unix)]
                {
                    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions());
                    assert_eq!(mode & 0o077, 0, "only this user reads {}", path.display());
                }
                told += &fs::read_to_string(path).unwrap_or_default();
            }
            assert!(told.contains(URL) && agent.is_pointed(), "{}", agent.name);
            let arguments = format!("{:?}", pointed.arguments);
            assert!(!arguments.contains("4711") && !arguments.contains("0123456789abcdef"), "{arguments}");
            for left in ["{url}", "{files}", "{id}"] {
                assert!(!told.contains(left) && !arguments.contains(left), "{}: {left}", agent.name);
            }
            let files = pointed._files.paths().to_vec();
            drop(pointed);
            assert!(files.iter().all(|path| !path.exists()), "nothing is left behind");
        }
    }
}

#[test]
fn an_address_that_the_user_has_set_becomes_the_upstream() {
    check("claude", &[], &[("ANTHROPIC_BASE_URL", "https://proxy.example/")], ("https://proxy.example", ""));
    check("claude", &[], &[], ("", ""));
    check("qwen", &[], &[("OPENAI_BASE_URL", "https://p.example/v1")], ("", "https://p.example/v1"));
    check("goose", &[], &[("OPENAI_BASE_URL", "https://b.example/v1")], ("", "https://b.example/v1"));
    let both = [("OPENAI_BASE_URL", "https://b.example/v1"), ("OPENAI_HOST", "https://h.example")];
    check("goose", &[], &both, ("", "https://h.example"));
    let place = Place::new(&[], &[("COPILOT_PROVIDER_BASE_URL", "https://proxy.example/v1")], &[]);
    let found = place.with(|around| Agent::named("copilot").destination(Upstreams::default(), around)).unwrap();
    assert_eq!(found.upstreams, Upstreams::one("https://proxy.example/v1"));
    let configured = Upstreams::one("https://other.example");
    let found = Place::new(&[], &[], &[]).with(|around| Agent::named("claude").destination(configured.clone(), around));
    assert_eq!(found.unwrap().upstreams, configured);
}

#[test]
fn an_address_in_the_files_of_an_agent_becomes_the_upstream() {
    let pi =
        r#"{"providers":{"anthropic":{"baseUrl":"https://a.example"},"openai":{"baseUrl":"https://o.example/v1"}}}"#;
    check("pi", &[("home/.pi/agent/models.json", pi)], &[], ("https://a.example", "https://o.example/v1"));
    let goose = "OPENAI_HOST: https://o.example\nANTHROPIC_HOST: \"https://a.example/\"\nGOOSE_PROVIDER: openai\n";
    check("goose", &[("home/.config/goose/config.yaml", goose)], &[], ("https://a.example", "https://o.example"));
    let nested = "extensions:\n  mine:\n    enabled: true\n    envs: {}\n    OPENAI_HOST: https://x.example\nOPENAI_HOST: https://o.example\n";
    check("goose", &[("home/.config/goose/config.yaml", nested)], &[], ("", "https://o.example"));
    let aider = "# mine\nopenai-api-base: https://o.example/v1  # there\n";
    for file in ["home/.aider.conf.yml", "work/.aider.conf.yml", "work/deep/.aider.conf.yml"] {
        check("aider", &[(file, aider)], &[("OPENAI_API_BASE", "https://v.example")], ("", "https://o.example/v1"));
    }
    check("aider", &[("work/.env", "OPENAI_API_BASE=https://o.example/v1\n")], &[], ("", "https://o.example/v1"));
    let mini = "OPENAI_API_BASE='https://o.example/v1'\nANTHROPIC_API_BASE=https://a.example\n";
    let file = "home/.config/mini-swe-agent/.env";
    check("mini", &[(file, mini)], &[], ("https://a.example", "https://o.example/v1"));
    check(
        "codex",
        &[("home/.codex/config.toml", "openai_base_url = \"https://o.example/v1/\"\n")],
        &[],
        ("", "https://o.example/v1"),
    );
    let opencode =
        "{ // mine\n \"provider\": {\"anthropic\": {\"options\": {\"baseURL\": \"https://a.example/v1\"}}},\n}";
    check("opencode", &[("home/.config/opencode/opencode.json", opencode)], &[], ("https://a.example/v1", ""));
    check("opencode", &[("work/opencode.jsonc", opencode)], &[], ("https://a.example/v1", ""));
    let qwen = r#"{"security":{"auth":{"baseUrl":"https://o.example/v1"}}}"#;
    check("qwen", &[("home/.qwen/settings.json", qwen)], &[], ("", "https://o.example/v1"));
    check("qwen", &[("work/.qwen/.env", "OPENAI_BASE_URL=https://o.example/v1")], &[], ("", "https://o.example/v1"));
    let kimi = "default_model = \"k.2\"\n[models.\"k.2\"]\nprovider = \"p\"\n[providers.p]\ntype = \"kimi\"\nbase_url = \"https://k.example/v1\"\n";
    check("kimi", &[("home/.kimi/config.toml", kimi)], &[], ("", "https://k.example/v1"));
}

#[test]
fn settings_that_beat_variables_are_served_by_settings_of_our_own() {
    let settings = r#"{"env":{"ANTHROPIC_BASE_URL":"https://s.example"}}"#;
    let variables = [("ANTHROPIC_BASE_URL", "https://v.example")];
    let place = Place::new(&[("home/.claude/settings.json", settings)], &variables, &[]);
    place.with(|around| {
        let agent = Agent::named("claude");
        let destination = agent.destination(Upstreams::default(), around).unwrap();
        assert_eq!(destination.upstreams.anthropic, "https://s.example");
        let pointed = agent.pointed_at(URL, &destination, around).unwrap();
        let [flag, file] = pointed.arguments.as_slice() else { panic!("{:?}", pointed.arguments) };
        assert_eq!(flag, "--settings");
        assert!(fs::read_to_string(file).unwrap().contains(URL));
    });
}

#[test]
fn what_would_not_reach_the_gateway_is_refused() {
    check_refused("pi", &[("home/.pi/agent/settings.json", r#"{"defaultProvider":"mine"}"#)], &[], &[], "`mine`");
    check_refused("pi", &[], &[], &["--provider", "google"], "`google`");
    check_refused("goose", &[("home/.config/goose/config.yaml", "GOOSE_PROVIDER: custom_x\n")], &[], &[], "`custom_x`");
    check_refused("goose", &[], &[("GOOSE_PROVIDER", "databricks")], &[], "`databricks`");
    check_refused("goose", &[], &[("GOOSE_LEAD_PROVIDER", "databricks")], &[], "`databricks`");
    let planner = "GOOSE_PROVIDER: openai\nGOOSE_PLANNER_PROVIDER: groq\n";
    check_refused("goose", &[("home/.config/goose/config.yaml", planner)], &[], &[], "`groq`");
    check_refused("codex", &[("home/.codex/config.toml", "model_provider = \"azure\"\n")], &[], &[], "`azure`");
    check_refused("codex", &[], &[], &["-c", "model_provider=\"azure\""], "azure");
    check_refused("codex", &[], &[], &["exec", "--oss"], "`--oss`");
    check_refused("codex", &[], &[], &["-p", "work"], "profile");
    check_refused("opencode", &[("work/opencode.json", r#"{"model":"openrouter/x"}"#)], &[], &[], "`openrouter/x`");
    check_refused("opencode", &[], &[], &["run", "--model=google/x"], "`google/x`");
    check_refused(
        "qwen",
        &[("home/.qwen/settings.json", r#"{"modelProviders":{"openai":[{"baseUrl":"x"}]}}"#)],
        &[],
        &[],
        "modelProviders",
    );
    check_refused("aider", &[("home/.env", "ANTHROPIC_API_BASE=https://a.example")], &[], &[], "ANTHROPIC_API_BASE");
    check_refused("aider", &[], &[], &["--openai-api-base", "https://x.example"], "--openai-api-base");
    check_refused("aider", &[("home/.aider.conf.yml", "set-env:\n  - OPENAI_API_BASE=x\n")], &[], &[], "set-env");
    check_refused("aider", &[("home/.aider.conf.yml", "set-env:\n- OPENAI_API_BASE=x\n")], &[], &[], "set-env");
    for arguments in [["--conf", "x.yml"], ["-c", "x.yml"], ["--env-f", "x.yml"]] {
        check_refused("aider", &[], &[], &arguments, "x.yml");
    }
    check_refused("aider", &[], &[("AIDER_ENV_FILE", "/srv/env")], &[], "AIDER_ENV_FILE");
    check("aider", &[("home/.aider.conf.yml", "set-env:\nmodel: x\n")], &[], ("", ""));
    check_refused("mini", &[], &[], &["-c", "mine.yaml"], "mine.yaml");
    check_refused("claude", &[], &[("CLAUDE_CODE_USE_BEDROCK", "1")], &[], "AWS_BEARER_TOKEN_BEDROCK");
    for name in ["CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_USE_MANTLE", "CLAUDE_CODE_USE_ANTHROPIC_AWS"] {
        check_refused("claude", &[], &[(name, "1")], &[], name);
    }
    check("claude", &[], &[("CLAUDE_CODE_USE_BEDROCK", "0")], ("", ""));
    let auth = |kind: &str| format!(r#"{{"security":{{"auth":{{"selectedType":"{kind}"}}}}}}"#);
    check("gemini", &[("home/.gemini/settings.json", auth("oauth-personal").as_str())], &[], ("", ""));
    check_refused("gemini", &[("home/.gemini/settings.json", auth("cloud-shell").as_str())], &[], &[], "cloud-shell");
    check_refused("gemini", &[], &[("CODE_ASSIST_ENDPOINT", "https://assist.example")], &[], "CODE_ASSIST_ENDPOINT");
    check("gemini", &[], &[], ("", ""));
    check("grok", &[], &[], ("", "https://api.x.ai/v1"));
    check_refused("gptme", &[], &[], &["-m", "openrouter/x"], "openrouter/x");
    check_refused("gptme", &[("work/gptme.toml", "[env]\nMODEL = \"local/x\"\n")], &[], &[], "local/x");
    // An argument wins over a file, as it does for the agent.
    let place = Place::new(
        &[("home/.pi/agent/settings.json", r#"{"defaultProvider":"mine"}"#)],
        &[],
        &["--provider", "openai"],
    );
    assert!(place.with(|around| Agent::named("pi").destination(Upstreams::default(), around)).is_ok());
}

/// Each was once sent to the public provider, with the key of another one.
#[test]
fn files_that_agents_read_besides_are_read_too() {
    let one = r#"{"provider":{"openai":{"options":{"baseURL":"https://o.example/v1"}}}}"#;
    for file in [
        "work/.opencode/opencode.json",
        "work/deep/.opencode/opencode.jsonc",
        "home/.opencode/opencode.json",
        "home/.config/opencode/config.json",
    ] {
        check("opencode", &[(file, one)], &[], ("", "https://o.example/v1"));
    }
    let api = r#"{"provider":{"anthropic":{"api":"https://a.example/v1"}}}"#;
    check("opencode", &[("work/opencode.json", api)], &[], ("https://a.example/v1", ""));
    let set = [("ANTHROPIC_BASE_URL", "https://v.example/v1"), ("OPENAI_BASE_URL", "https://w.example/v1")];
    check("opencode", &[("work/opencode.json", api)], &set, ("https://a.example/v1", "https://w.example/v1"));
    check("opencode", &[], &set, ("https://v.example/v1", "https://w.example/v1"));
    // The nearest file has no address, and the settings of both count.
    let both = [("work/opencode.json", one), ("work/deep/opencode.json", "{}")];
    check("opencode", &both, &[], ("", "https://o.example/v1"));
    let grok = [("work/deep/.env", "GROK_BASE_URL=https://o.example/v1"), ("home/.grok/user-settings.json", "{}")];
    check("grok", &grok, &[], ("", "https://o.example/v1"));
    let claude = r#"{"env":{"ANTHROPIC_BASE_URL":"https://a.example"}}"#;
    check("claude", &[("home/.claude.json", claude)], &[], ("https://a.example", ""));
    let settings = r#"{"env":{"OPENAI_BASE_URL":"https://o.example/v1","ANTHROPIC_BASE_URL":"https://a.example"}}"#;
    for file in ["home/.qwen/settings.json", "work/.qwen/settings.json"] {
        check("qwen", &[(file, settings)], &[], ("https://a.example", "https://o.example/v1"));
    }
    for name in ["QWEN_CODE_SYSTEM_SETTINGS_PATH", "QWEN_CODE_SYSTEM_DEFAULTS_PATH"] {
        let place = Place::new(&[("system.json", settings)], &[], &[]);
        let path = place.root.path().join("system.json").display().to_string();
        let place = Place {
            variables: place.variables.clone().into_iter().chain([(name.to_owned(), path)]).collect(),
            ..place
        };
        let found = place.with(|around| Agent::named("qwen").destination(Upstreams::default(), around)).unwrap();
        assert_eq!(
            (found.upstreams.anthropic.as_str(), found.upstreams.openai.as_str()),
            ("https://a.example", "https://o.example/v1"),
            "{name}"
        );
    }
    // Above the repository; but of several files only the nearest one is read.
    check("qwen", &[(".env", "OPENAI_BASE_URL=https://o.example/v1")], &[], ("", "https://o.example/v1"));
    let two = [(".env", "OPENAI_BASE_URL=https://o.example/v1"), ("work/.qwen/.env", "X=1")];
    check("qwen", &two, &[], ("", ""));
    let place = Place::new(&[(".env", "GOOGLE_GEMINI_BASE_URL=https://g.example")], &[], &[]);
    let found = place.with(|around| Agent::named("gemini").destination(Upstreams::default(), around)).unwrap();
    assert_eq!(found.upstreams.google, "https://g.example");
}

/// Each was once sent to the host that a project names, with the key of the user's.
#[test]
fn files_that_agents_do_not_read_say_nothing() {
    let settings = r#"{"env":{"ANTHROPIC_BASE_URL":"https://p.example"}}"#;
    let own = [("ANTHROPIC_BASE_URL", "https://a.example")];
    check("claude", &[("work/.claude/settings.json", settings)], &own, ("https://a.example", ""));
    check("claude", &[("work/deep/.claude/settings.json", settings)], &own, ("https://p.example", ""));
    check("grok", &[("work/.env", "GROK_BASE_URL=https://p.example/v1")], &[], ("", "https://api.x.ai/v1"));
    // Which settings count, or whether this file does, is not known for all versions.
    check_refused("claude", &[], &[], &["--setting-sources", "user"], "`--setting-sources`");
    for arguments in [&["run", "--dir", "../other"][..], &[".."]] {
        check_refused("opencode", &[], &[], arguments, arguments[arguments.len() - 1]);
    }
    let codex = "openai_base_url = \"https://p.example/v1\"\n";
    for file in ["work/.codex/config.toml", "work/deep/.codex/config.toml"] {
        check_refused("codex", &[(file, codex)], &[], &[], "https://p.example/v1");
        check_refused("codex", &[(file, "model_provider = \"p\"\n")], &[], &[], "`p`");
    }
    let azure = [
        ("work/.codex/config.toml", "model_provider = \"openai\"\n"),
        ("home/.codex/config.toml", "model_provider = \"azure\"\n"),
    ];
    check_refused("codex", &azure, &[], &[], "`azure`");
}

#[test]
fn addresses_that_the_gateway_would_replace_are_refused() {
    let assist = [("home/.gemini/.env", "CODE_ASSIST_ENDPOINT=https://g.example")];
    check_refused("gemini", &assist, &[], &[], "CODE_ASSIST_ENDPOINT");
    check_refused("gemini", &[], &[("GOOGLE_VERTEX_BASE_URL", "https://g.example")], &[], "GOOGLE_VERTEX_BASE_URL");
    let vertex = [("home/.gemini/.env", "GOOGLE_VERTEX_BASE_URL=https://g.example")];
    check_refused("gemini", &vertex, &[], &[], "GOOGLE_VERTEX_BASE_URL");
    let models = r#"{"providers":{"openai":{"models":[{"id":"a"},{"id":"b","baseUrl":"https://o.example/v1"}]}}}"#;
    check_refused("pi", &[("home/.pi/agent/models.json", models)], &[], &[], "https://o.example/v1");
    let model = r#"{"provider":{"anthropic":{"models":{"a":{},"b":{"provider":{"api":"https://m.example/v1"}}}}}}"#;
    check_refused("opencode", &[("work/opencode.json", model)], &[], &[], "https://m.example/v1");
    let extension = "export default (pi) => pi.registerProvider(\"anthropic\", { baseUrl: process.env.CORP })";
    for file in ["home/.pi/agent/extensions/corp.ts", "work/deep/.pi/extensions/corp/index.ts"] {
        check_refused("pi", &[(file, extension)], &[], &[], "an extension");
    }
    check("pi", &[("home/.pi/agent/extensions/a.ts", "export default (pi) => pi.on(\"start\")")], &[], ("", ""));
    let kimi = "default_model = \"k\"\n[models.k]\nprovider = \"p\"\n[models.l]\nprovider = \"q\"\n[providers.p]\ntype = \"kimi\"\nbase_url = \"https://k.example/v1\"\n[providers.q]\ntype = \"kimi\"\nbase_url = \"https://l.example/v1\"\n";
    check_refused("kimi", &[("home/.kimi/config.toml", kimi)], &[], &["-m", "l"], "`-m`");
    check_refused("goose", &[], &[("GOOSE_ADDITIONAL_CONFIG_FILES", "/srv/goose.yaml")], &[], "/srv/goose.yaml");
    check_refused("gptme", &[], &[("LLM_PROXY_URL", "https://x.example")], &[], "LLM_PROXY_URL");
}

#[test]
fn what_cannot_be_understood_is_refused() {
    check_refused("codex", &[("home/.codex/config.toml", "what = is = this")], &[], &[], "cannot be read");
    check_refused("pi", &[("home/.pi/agent/models.json", "{\"providers\": ")], &[], &[], "cannot be read");
    let shared = "mine: &mine\n  OPENAI_HOST: https://x.example\n<<: *mine\n";
    check_refused("goose", &[("home/.config/goose/config.yaml", shared)], &[], &[], "cannot be read");
    check_refused("claude", &[], &[("ANTHROPIC_BASE_URL", "$PROXY/v1")], &[], "no address");
    check_refused("goose", &[], &[("OPENAI_HOST", "ftp://x")], &[], "no address");
    for agent in ["copilot", "kimi", "kimi-code"] {
        check_refused(agent, &[], &[], &[], "is not known");
    }
}

#[cfg(unix)]
#[test]
fn what_a_killed_run_left_behind_is_removed() {
    // No process has so high a number.
    let left = "home/.codex/contexture-2147483647-0123abcd.config.toml";
    let running = format!("home/.codex/contexture-{}-0123abcd.config.toml", process::id());
    let others = "home/.codex/contexture-mine.config.toml";
    let place = Place::new(&[(left, "x"), (&running, "x"), (others, "x")], &[], &[]);
    let destination = Destination { upstreams: Upstreams::default(), is_beaten: false, doubts: Vec::new() };
    drop(place.with(|around| Agent::named("codex").pointed_at(URL, &destination, around)).unwrap());
    let is_there = |name: &str| place.root.path().join(name).exists();
    assert!(!is_there(left) && is_there(&running) && is_there(others));
}

#[test]
fn every_agent_of_the_table_has_a_trial() {
    for agent in known() {
        let place = Place::new(&[], &[("OPENAI_API_KEY", "sk-made-up"), ("ANTHROPIC_API_KEY", "sk-made-up")], &[]);
        let question = place.with(|around| agent.question(around)).unwrap();
        assert!(!question.is_empty(), "{}", agent.name);
    }
}

#[test]
fn a_trial_names_a_model_only_if_nobody_has_configured_one() {
    let question = |files: Pairs<'_>, variables: Pairs<'_>| {
        let place = Place::new(files, variables, &[]);
        place.with(|around| Agent::named("mini").question(around)).unwrap().join(" ")
    };
    assert!(question(&[], &[("OPENAI_API_KEY", "k")]).ends_with("-m openai/gpt-5.1"));
    assert!(question(&[], &[("ANTHROPIC_API_KEY", "k"), ("OPENAI_API_KEY", "k")]).contains("-m anthropic/"));
    assert!(!question(&[], &[]).contains(" -m "));
    let configured = [("home/.config/mini-swe-agent/.env", "MSWEA_MODEL_NAME='openai/mine'\n")];
    assert!(!question(&configured, &[("OPENAI_API_KEY", "k")]).contains(" -m "));
}

#[test]
fn what_the_user_has_set_is_left_alone() {
    let told = |agent: &str, variables: Pairs<'_>| {
        let place = Place::new(&[], variables, &[]);
        place.with(|around| {
            let agent = Agent::named(agent);
            let destination = agent.destination(Upstreams::default(), around).unwrap();
            agent.pointed_at(URL, &destination, around).unwrap().set
        })
    };
    let has = |set: &[(String, String)], name: &str| set.iter().find(|pair| pair.0 == name).map(|pair| pair.1.clone());
    assert_eq!(has(&told("claude", &[]), "ENABLE_TOOL_SEARCH").as_deref(), Some("true"));
    for own in ["false", "auto:10", ""] {
        assert_eq!(has(&told("claude", &[("ENABLE_TOOL_SEARCH", own)]), "ENABLE_TOOL_SEARCH"), None, "{own}");
    }
    assert!(has(&told("codex", &[]), "RUST_LOG").unwrap().contains("responses_websocket=off"));
    assert_eq!(has(&told("codex", &[("RUST_LOG", "debug")]), "RUST_LOG"), None);
}

#[test]
fn claude_code_reaches_its_models_on_bedrock_and_vertex() {
    let destination = |files: Pairs<'_>, variables: Pairs<'_>| {
        Place::new(files, variables, &[])
            .with(|around| Agent::named("claude").destination(Upstreams::default(), around))
    };
    let anthropic = |files: Pairs<'_>, variables: Pairs<'_>| destination(files, variables).unwrap().upstreams.anthropic;
    let bedrock = [("CLAUDE_CODE_USE_BEDROCK", "1"), ("AWS_BEARER_TOKEN_BEDROCK", "made-up")];
    assert_eq!(anthropic(&[], &bedrock), "https://bedrock-runtime.us-east-1.amazonaws.com");
    let region = [bedrock[0], bedrock[1], ("AWS_REGION", "eu-west-1"), ("ANTHROPIC_BASE_URL", "https://not.example")];
    assert_eq!(anthropic(&[], &region), "https://bedrock-runtime.eu-west-1.amazonaws.com");
    let own = [bedrock[0], bedrock[1], ("ANTHROPIC_BEDROCK_BASE_URL", "https://own.example/")];
    assert_eq!(anthropic(&[], &own), "https://own.example");
    let odd = [bedrock[0], bedrock[1], ("AWS_REGION", "x.evil.example/")];
    assert!(destination(&[], &odd).unwrap_err().sentence().contains("no region"));
    let settings = r#"{"env":{"CLAUDE_CODE_USE_BEDROCK":"true","AWS_REGION":"eu-north-1","AWS_BEARER_TOKEN_BEDROCK":"x",
        "ANTHROPIC_BEDROCK_BASE_URL":"https://theirs.example"}}"#;
    let found = destination(&[("home/.claude/settings.json", settings)], &[]).unwrap();
    assert_eq!((found.upstreams.anthropic.as_str(), found.is_beaten), ("https://theirs.example", true));
    // Vertex signs nothing, and the gateway finds the region in the path.
    assert_eq!(
        anthropic(&[], &[("CLAUDE_CODE_USE_VERTEX", "1"), ("ANTHROPIC_BASE_URL", "https://not.example")]),
        ANTHROPIC
    );
    let own = [("CLAUDE_CODE_USE_VERTEX", "1"), ("ANTHROPIC_VERTEX_BASE_URL", "https://own.example/v1")];
    assert_eq!(anthropic(&[], &own), "https://own.example/v1");
    assert_eq!(anthropic(&[], &[("CLAUDE_CODE_USE_VERTEX", "0"), own[1]]), ANTHROPIC);
}

#[test]
fn settings_that_bypass_the_gateway_are_found_wherever_they_are() {
    let bedrock = r#"{"env":{"CLAUDE_CODE_USE_BEDROCK":"1"}}"#;
    for file in
        ["home/.claude/settings.json", "work/deep/.claude/settings.json", "work/deep/.claude/settings.local.json"]
    {
        check_refused("claude", &[(file, bedrock)], &[], &[], "CLAUDE_CODE_USE_BEDROCK");
    }
    let own = r#"{"env":{"ANTHROPIC_BASE_URL":"https://s.example"}}"#;
    check_refused("claude", &[], &[], &["--settings", own], "ANTHROPIC_BASE_URL");
    check_refused("claude", &[("work/deep/mine.json", own)], &[], &["--settings=mine.json"], "ANTHROPIC_BASE_URL");
    let harmless = Place::new(&[("work/deep/mine.json", r#"{"model":"x"}"#)], &[], &["--settings", "mine.json"]);
    assert!(harmless.with(|around| Agent::named("claude").destination(Upstreams::default(), around)).is_ok());
}

#[test]
fn with_an_upstream_that_is_given_nothing_is_refused_but_doubts_are_said() {
    let settings = r#"{"env":{"ANTHROPIC_BASE_URL":"https://s.example","CLAUDE_CODE_USE_BEDROCK":"1"}}"#;
    let place = Place::new(&[("home/.claude/settings.json", settings)], &[], &[]);
    let given = Upstreams::one("https://given.example");
    let found = place.with(|around| Agent::named("claude").destination_given(given.clone(), around));
    assert_eq!(found.upstreams, given);
    assert!(found.is_beaten, "settings that beat variables are beaten in turn");
    assert!(found.doubts.len() == 1 && found.doubts[0].contains("BEDROCK"), "{:?}", found.doubts);
    let broken = Place::new(&[("home/.codex/config.toml", "what = is = this")], &[], &[]);
    let found = broken.with(|around| Agent::named("codex").destination_given(given, around));
    assert!(found.doubts.len() == 1 && found.doubts[0].contains("cannot be read"), "{:?}", found.doubts);
}

/// The page of agents and the table name the same packages.
#[test]
fn an_agent_that_is_not_installed_says_how_to_install_it() {
    let page = include_str!("../../../../../docs/reference/agents.md");
    let missing = io::Error::from(io::ErrorKind::NotFound);
    let named: Vec<Agent> = known().into_iter().filter(|agent| agent.run.package().is_some()).collect();
    assert!(named.len() > 10, "{} agents name a package", named.len());
    for agent in named {
        let failure = agent.not_started(&missing);
        let package = agent.run.package().unwrap();
        assert!(failure.sentence().ends_with("it is not installed, or not on the PATH"), "{failure:?}");
        assert!(format!("{failure:?}").contains(&format!("install it with `{package}`")), "{failure:?}");
        let (name, package) = (agent.name, package.rsplit(' ').next().unwrap().to_owned());
        let row = page.lines().find(|line| line.contains(&format!("| `{name}` |")));
        let row = row.unwrap_or_else(|| panic!("docs/reference/agents.md has no row for `{name}`"));
        assert!(row.contains(&format!("`{package}`")), "{name}: {row}");
    }
}
