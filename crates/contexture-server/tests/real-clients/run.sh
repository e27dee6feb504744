#!/usr/bin/env bash
# Runs real agents behind the gateway, with made-up keys, against a provider on this machine (provider.mjs).
#
#   run.sh CONTEXTURE [AGENT…]      CONTEXTURE is the program; agents are claude, codex and pi unless others are named
#
# Agents are installed from npm by name into AGENTS_DIR (a directory beneath the one for temporary files unless it is
# set). With Linux's namespaces only loopback exists while they run. Each agent is given a task of STEPS commands with
# a budget that it outgrows; wanted is that it ends well, that no request breaks the provider's rules, and that the
# receipt tells of a fold.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
contexture=$(realpath "$1")
shift
agents=("$@")
[ ${#agents[@]} -gt 0 ] || agents=(claude codex pi)
dir=${AGENTS_DIR:-${TMPDIR:-/tmp}/contexture-real-clients}
steps=${STEPS:-14}
declare -A package=([claude]=@anthropic-ai/claude-code [codex]=@openai/codex [pi]=@mariozechner/pi-coding-agent)
declare -A arguments=(
  [claude]="-p --dangerously-skip-permissions"
  [codex]="exec -m gpt-5.1 --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox"
  [pi]="-p --provider anthropic"
)
# What instructions and tools take, and room for about a third of the task.
declare -A budget=([claude]=${CLAUDE_BUDGET:-40000} [codex]=${CODEX_BUDGET:-26000} [pi]=${PI_BUDGET:-14000})

mkdir -p "$dir"
for agent in "${agents[@]}"; do
  [ -x "$dir/node_modules/.bin/$agent" ] || npm install --prefix "$dir" --no-fund --no-audit "${package[$agent]}" >"$dir/npm.log" 2>&1
done
export PATH="$dir/node_modules/.bin:$PATH"

failed=0
for agent in "${agents[@]}"; do
  work=$(mktemp -d)
  log=$work/requests.jsonl
  touch "$log"
  for ((part = 0; part < steps; part++)); do
    { echo "step-$part-of-the-task"; for n in $(seq 1 160); do echo "line $n of the text that belongs to part $part of the work"; done; } >"$work/part_$part.txt"
  done
  cat >"$work/inside.sh" <<INSIDE
ip link set lo up 2>/dev/null || true
node "$here/provider.mjs" 18080 $steps "$log" &
provider=\$!
sleep 1
cd "$work"
"$contexture" run --budget ${budget[$agent]} --upstream http://127.0.0.1:18080/v1 $agent ${arguments[$agent]} "Do the task." >"$work/out" 2>"$work/err" </dev/null
echo \$? >"$work/code"
kill \$provider
INSIDE
  run=(bash "$work/inside.sh")
  if unshare -rn true 2>/dev/null; then run=(unshare -rn "${run[@]}"); fi
  HOME=$work/home XDG_STATE_HOME=$work/state ANTHROPIC_API_KEY=sk-ant-made-up OPENAI_API_KEY=sk-made-up IS_SANDBOX=1 \
    timeout 300 "${run[@]}" || true
  node "$here/judge.mjs" "$agent" "$work" "$steps" || failed=1
done
exit $failed
