// A PostgreSQL server of the tests, in a directory of its own.
import { execFileSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";

const INSTALLED = "/usr/lib/postgresql";

/** Where its programs are, if it is installed. */
export function programs() {
  const versions = existsSync(INSTALLED) ? readdirSync(INSTALLED).sort((a, b) => Number(b) - Number(a)) : [];
  const places = [...process.env.PATH.split(path.delimiter), ...versions.map((version) => `${INSTALLED}/${version}/bin`)];
  return places.find((place) => existsSync(path.join(place, "initdb")));
}

/** Does some work with a running server, which is given as its address. */
export async function withServer(bin, work) {
  const place = mkdtempSync(path.join(tmpdir(), "contexture-"));
  const run = (program, ...given) => execFileSync(path.join(bin, program), given, { cwd: place, stdio: "ignore", ...user(place) });
  const data = path.join(place, "data");
  try {
    run("initdb", "-D", data, "-U", "ann", "-A", "trust", "--no-sync");
    const port = await freePort();
    run("pg_ctl", "start", "-o", `-h 127.0.0.1 -p ${port} -k ${place} -F`, "-D", data, "-w", "-l", path.join(place, "log"));
    try {
      await work(`postgres://ann@127.0.0.1:${port}/postgres`);
    } finally {
      run("pg_ctl", "stop", "-D", data, "-m", "immediate");
    }
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

/** It refuses to run as root. */
function user(place) {
  if (process.getuid() !== 0) return {};
  const [uid, gid] = ["-u", "-g"].map((option) => Number(execFileSync("id", [option, "postgres"])));
  chownSync(place, uid, gid);
  return { uid, gid };
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
