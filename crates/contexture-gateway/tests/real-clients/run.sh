#!/usr/bin/env bash
# Runs real clients with and without the gateway, with made-up keys, against a provider on this machine: see README.md.
#
#   run.sh CONTEXTURE [CLIENT…]      CONTEXTURE is the program; clients are claude, codex and pi unless others are named
#   run.sh CONTEXTURE surroundings   an address that was set before, a proxy, a settings file that beats the environment
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
contexture=$(realpath "$1")
shift
clients=("$@")
[ ${#clients[@]} -gt 0 ] || clients=(claude codex pi)
export AGENTS_DIR=${AGENTS_DIR:-${TMPDIR:-/tmp}/contexture-real-clients}
python=${PYTHON:-python3}
mkdir -p "$AGENTS_DIR/bin"

# What is to be installed, by name: "npm PACKAGES", "pip PACKAGES" or "file NAME PATH" for each client.
needed() {
  node --input-type=module - "$here" "${clients[@]}" <<'NODE'
const [here, ...given] = process.argv.slice(2);
const names = given.map((name) => (name === "surroundings" ? "claude" : name));
const { clients } = await import(`${here}/clients.mjs`);
const wanted = clients(here).filter(({ name }) => names.some((one) => name === one || name.startsWith(`${one}-`)));
for (const one of names) if (!wanted.some(({ name }) => name === one || name.startsWith(`${one}-`))) console.log(`unknown ${one}`);
for (const { npm, pip, file, command } of wanted) {
  if (npm) console.log(`npm ${npm}`);
  if (pip) console.log(`pip ${pip.join(" ")}`);
  if (file) console.log(`file ${command} ${file}`);
}
NODE
}

needed | sort -u | while read -r kind first rest; do
  case $kind in
    unknown) echo "run.sh: no client is called $first" >&2; exit 2 ;;
    npm) for package in $first $rest; do
      [ -d "$AGENTS_DIR/node_modules/$package" ] || npm install --prefix "$AGENTS_DIR" --no-fund --no-audit "$package" >"$AGENTS_DIR/npm.log" 2>&1
    done ;;
    pip) [ -f "$AGENTS_DIR/venv-$first/done" ] || {
      "$python" -m venv "$AGENTS_DIR/venv-$first"
      # shellcheck disable=SC2086
      "$AGENTS_DIR/venv-$first/bin/pip" install -q $first $rest >"$AGENTS_DIR/pip-$first.log" 2>&1
      touch "$AGENTS_DIR/venv-$first/done"
    } ;;
    file) chmod +x "$AGENTS_DIR/$rest"; ln -sf "../$rest" "$AGENTS_DIR/bin/$first" ;;
  esac
done

program=$here/run.mjs
[ "${clients[0]}" != surroundings ] || program=$here/surroundings.mjs
# With Linux's namespaces only loopback exists while they run.
inside=(bash -c 'ip link set lo up 2>/dev/null || true; exec node "$@"' run "$program" "$contexture" "${clients[@]}")
if unshare -rn true 2>/dev/null; then exec unshare -rn "${inside[@]}"; fi
echo "run.sh: without network namespaces, clients are not run" >&2
exit 3
