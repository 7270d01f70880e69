// Runs conversations with real agents of the Agent Client Protocol against a scripted model, if they can be installed
// here: npm run test:acp [-- NAME…]. Exits with 0 when everything works, 1 when something fails, 77 when none could be
// tried.
//
// ACP_AGENTS_FOLDER   where to install the agents and keep them; by default a temporary folder
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { COMMAND_LINES } from './lib/command-lines.ts';

const CANNOT = 77;
/** The versions with which this last worked. */
const PACKAGES = {
  claude: '@agentclientprotocol/claude-agent-acp@0.101.0',
  qwen: '@qwen-code/qwen-code@0.24.4',
  codex: '@agentclientprotocol/codex-acp@2.6.0',
  gemini: '@google/gemini-cli@0.61.0',
  opencode: 'opencode-ai@1.18.33',
  copilot: '@github/copilot@1.0.102',
};

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const say = (text) => process.stdout.write(`${text}\n`);
const npmEnvironment = {
  ...process.env,
  PATH: `${path.dirname(process.execPath)}${path.delimiter}${process.env['PATH'] ?? ''}`,
};

/** @returns where the agent is installed; undefined when the installation failed, after printing why */
function install(name, folder) {
  const target = path.join(folder, name);
  if (!existsSync(path.join(target, 'node_modules'))) {
    mkdirSync(target, { recursive: true });
    writeFileSync(path.join(target, 'package.json'), '{ "private": true }\n');
    say(`installing ${PACKAGES[name]}, which takes a while`);
    const { status, stdout, stderr } = spawnSync(
      'npm',
      // OpenCode's program is put in its place by a script.
      ['install', `--ignore-scripts=${name !== 'opencode'}`, '--no-audit', '--no-fund', PACKAGES[name]],
      { cwd: target, encoding: 'utf8', env: npmEnvironment },
    );
    if (status !== 0) {
      say(`${stdout ?? ''}${stderr ?? ''}`.trim().split('\n').slice(-10).join('\n'));
      say(`NOT TRIED: ${PACKAGES[name]} could not be installed.`);
      return undefined;
    }
  }
  return target;
}

const [asked] = COMMAND_LINES['scripts/test-acp.mjs'].parse().processedArgs;
const names = asked.length > 0 ? asked : Object.keys(PACKAGES);
const given = process.env['ACP_AGENTS_FOLDER'];
const folder = given ?? mkdtempSync(path.join(tmpdir(), 'slipway-acp-'));
const results = [];
try {
  for (const name of names) {
    const target = install(name, folder);
    if (target === undefined) {
      results.push(CANNOT);
      continue;
    }
    const { status } = spawnSync(
      process.execPath,
      [
        '--disable-warning=ExperimentalWarning',
        'scripts/run-typescript.mjs',
        'packages/agent-server/test/acp/run.ts',
        name,
        target,
      ],
      { cwd: root, stdio: 'inherit' },
    );
    results.push(status ?? 1);
  }
} finally {
  if (given === undefined) {
    rmSync(folder, { recursive: true, force: true });
  }
}
process.exitCode = results.every((status) => status === CANNOT)
  ? CANNOT
  : Number(results.some((status) => status !== 0 && status !== CANNOT));
