// Runs the tests of sign-in against a real Keycloak: that of KEYCLOAK_HOME, else one that Maven gets.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { COMMAND_LINES } from './lib/command-lines.ts';

const { cache = path.join(homedir(), '.cache/slipway-keycloak') } = COMMAND_LINES['scripts/test-keycloak.mjs']
  .parse()
  .opts();

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const VERSION = '26.7.3';
/** As in scripts/test-stock.mjs: it cannot be installed here. */
const NOT_HERE = 77;

function run(program, args, options = {}) {
  const { status, error } = spawnSync(program, args, { stdio: 'inherit', ...options });
  if (error) {
    process.stderr.write(`${program}: ${error.message}\n`);
  }
  return status ?? 1;
}

/** The folder of a Keycloak; null where there is none to be had. */
function installed() {
  const folder = path.join(cache, `keycloak-${VERSION}`);
  if (!existsSync(path.join(folder, 'bin/kc.sh'))) {
    mkdirSync(cache, { recursive: true });
    const artifact = `org.keycloak:keycloak-quarkus-dist:${VERSION}:zip`;
    const copy = [
      'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy',
      `-Dartifact=${artifact}`,
      `-DoutputDirectory=${cache}`,
    ];
    const archive = path.join(cache, `keycloak-quarkus-dist-${VERSION}.zip`);
    if (run('mvn', ['-q', '-B', ...copy]) !== 0 || run('unzip', ['-q', '-o', archive, '-d', cache]) !== 0) {
      return null;
    }
  }
  return folder;
}

const home = process.env['KEYCLOAK_HOME'] ?? installed();
if (home === null || run('java', ['-version']) !== 0) {
  process.stderr.write(
    'Nothing was tested: Keycloak needs Java 17 or newer, and is got by Maven and unzip unless KEYCLOAK_HOME names one.\n',
  );
  process.exitCode = NOT_HERE;
} else {
  process.exitCode = run(
    process.execPath,
    ['scripts/test.mjs', '--config', 'jest.system.config.mjs', 'test/keycloak'],
    {
      cwd: ROOT,
      env: { ...process.env, KEYCLOAK_HOME: home },
    },
  );
}
