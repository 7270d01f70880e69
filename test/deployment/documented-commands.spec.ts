import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { buildArgv } from 'jest';
import { COMMAND_LINES } from '../../scripts/lib/command-lines.js';
import { EXIT } from '../../src/cli/command-output.js';
import { runSlipway } from '../../src/cli/slipway-program.js';
import { commandsOf, type DocumentedCommand, wordsOf } from './documented-commands.js';

const ROOT = path.join(import.meta.dirname, '../..');
const BUILT = /(^|\/)(node_modules|\.data|dist|release|coverage)(\/|$)/;
/** Its version is said in many ways. */
const PACKAGE = /slipway-(client-)?[\w.$]+\.tgz/g;

const find = (...patterns: string[]): string[] =>
  globSync(patterns, { cwd: ROOT, exclude: (name) => BUILT.test(name) });
const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');
const scriptsOf = (folder: string): Record<string, string> =>
  (JSON.parse(read(path.join(folder, 'package.json'))) as { scripts: Record<string, string> }).scripts;

const PAGES = find(
  '{README,CONTRIBUTING,SECURITY}.md',
  '{docs,deploy,packages,clients}/**/*.md',
  'bench/README.md',
);
const CI = find('.ci/*').map(read).join('\n');
/** The words of each command of CI. */
const RUN_BY_CI = CI.replaceAll(/\\\n */g, '')
  .replaceAll('"${compose[@]}"', 'docker compose')
  .split('\n')
  .map((line) => wordsOf(line).map(plain));
const WORKSPACES = Object.fromEntries(
  find('packages/*/package.json').map((file) => [
    (JSON.parse(read(file)) as { name: string }).name,
    path.dirname(file),
  ]),
);
const COMMANDS = PAGES.flatMap((page) => commandsOf(page, read(page)));

/** Why a command is not known to work; null when it is. */
async function problemOf({ words: [program = '', ...args] }: DocumentedCommand): Promise<string | null> {
  if (program === 'npx' && args[0]?.match(PACKAGE)) {
    return await problemOfSlipway(args.slice(1));
  }
  if (program === 'npm') {
    const npm = npmScript(args);
    if (npm !== null) {
      return await problemOfScript(npm);
    }
  }
  const named = args.filter((word, index) => index < firstOption(args) || /^--|\.tgz$/.test(word));
  const isRun = RUN_BY_CI.some((line) => [program, ...named].every((word) => line.includes(plain(word))));
  return isRun ? null : 'nothing in .ci runs this';
}

/** A word without what differs from place to place: versions, folders, values of options. */
function plain(word: string): string {
  return word
    .replace(PACKAGE, 'slipway-$1VERSION.tgz')
    .replace(/^(\.\/path\/to|\$root)\//, '')
    .replace(/^(--[\w-]+)=.*$/, '$1');
}

function firstOption(args: string[]): number {
  const index = args.findIndex((word) => word.startsWith('-'));
  return index < 0 ? args.length : index;
}

interface NpmScript {
  folder: string;
  name: string;
  args: string[];
}

/** null for a command of npm itself */
function npmScript(words: string[]): NpmScript | null {
  const dashes = words.indexOf('--');
  const own = dashes < 0 ? words : words.slice(0, dashes);
  const args = dashes < 0 ? [] : words.slice(dashes + 1);
  const workspace = own.findIndex((word) => word === '-w' || word === '--workspace');
  const folder = workspace < 0 ? '.' : (WORKSPACES[own[workspace + 1] ?? ''] ?? 'nowhere');
  const [verb = '', name = verb] = own.filter((word) => !word.startsWith('-'));
  return verb === 'run' || verb === 'test' || verb === 'start'
    ? { folder, name: verb === 'run' ? name : verb, args }
    : null;
}

async function problemOfScript({ folder, name, args }: NpmScript): Promise<string | null> {
  const script = scriptsOf(folder)[name];
  if (script === undefined) {
    return `package.json has no script ${name}`;
  }
  if (name === 'keys' || name === 'slipway') {
    return await problemOfSlipway(name === 'keys' ? [name, ...args] : args);
  }
  if (script.includes('scripts/test.mjs') || script.startsWith('npm test')) {
    return problemOfJest(args.filter((argument) => argument !== '--changed'));
  }
  const commandLine = Object.entries(COMMAND_LINES).find(([file]) => script.includes(file))?.[1];
  if (commandLine === undefined) {
    return args.length === 0 ? null : `${name} takes no arguments`;
  }
  try {
    commandLine
      .exitOverride()
      .configureOutput({ writeErr: () => undefined })
      .parse(args, { from: 'user' });
    return null;
  } catch (error) {
    return errorMessage(error);
  }
}

async function problemOfJest(args: string[]): Promise<string | null> {
  try {
    await buildArgv(args);
    return null;
  } catch (error) {
    return errorMessage(error);
  }
}

/** What `slipway … --help` does not know. */
async function problemOfSlipway(args: string[]): Promise<string | null> {
  const shown: string[] = [];
  const output = {
    result: (line: string) => void shown.push(line),
    note: (line: string) => void shown.push(line),
  };
  const named = args.slice(0, firstOption(args));
  const status = await runSlipway([...named, '--help'], output);
  const help = shown.join('\n');
  const missing = args.filter((word) => word.startsWith('--') && !help.includes(word));
  return status === EXIT.done && missing.length === 0 ? null : `unknown to slipway: ${missing.join(' ')}`;
}

describe('documented commands', () => {
  it('are known to what they run, or are run by CI', async () => {
    const found = await Promise.all(
      COMMANDS.map(async (command) => ({ command, problem: await problemOf(command) })),
    );

    expect(COMMANDS.length).toBeGreaterThan(100);
    expect(
      found.flatMap(({ command, problem }) =>
        problem === null ? [] : [`${command.page}: ${command.text}: ${problem}`],
      ),
    ).toEqual([]);
  });

  it('set variables that a page explains', () => {
    const explained = ['docs/configuration.md', 'CONTRIBUTING.md', 'bench/README.md'].map(read).join('\n');

    expect(
      COMMANDS.flatMap(({ page, variables }) =>
        variables.filter((name) => !explained.includes(name)).map((name) => `${page}: ${name}`),
      ),
    ).toEqual([]);
  });
});

describe('variables of tests', () => {
  /** Of the system, a sandbox, npm and Jest; and one of a stand-in for a tool server, whose file its test looks at. */
  const GIVEN = new Set([
    'PATH',
    'HOME',
    'TMPDIR',
    'LD_LIBRARY_PATH',
    'HTTP_PROXY',
    'CI',
    'GIT_CONFIG_GLOBAL',
    'JEST_WORKER_ID',
    'LISTEN_HOST',
    'PID_FILE',
  ]);
  /** They come from outside as well, though tests hand them on. */
  const HANDED_ON = ['KUBECONFIG', 'DOCKER_HOST', 'KEYCLOAK_HOME', 'TEST_DATABASE_URL'];
  const sources = find('{test,scripts,packages/*/test}/**/*.{ts,mjs,cjs}').map(read).join('\n');
  const rows: { names: string[]; runBy: string }[] = [
    ...read('CONTRIBUTING.md').matchAll(/^\| (`[A-Z][^|]*) \|([^|]*)\| +([^|]*?) +\|$/gm),
  ].map(([, names = '', , runBy = '']) => ({
    names: [...names.matchAll(/[A-Z][A-Z0-9_]+/g)].map(([name]) => name),
    runBy,
  }));
  const listed = rows.flatMap(({ names }) => names);

  it('are those that CONTRIBUTING.md lists', () => {
    const isSet = (name: string): boolean => new RegExp(`\\b${name}(:|'\\] (\\|\\|)?= )`).test(sources);
    const used = [...sources.matchAll(/process\.env(?:\.|\[')([A-Z][A-Z0-9_]*)/g)].map(
      ([, name = '']) => name,
    );
    const fromOutside = [...new Set(used)].filter(
      (name) => HANDED_ON.includes(name) || (!GIVEN.has(name) && !isSet(name)),
    );

    expect(listed.toSorted()).toEqual(fromOutside.toSorted());
  });

  it('are set somewhere in CI, or the list says what they need', () => {
    expect(
      rows.flatMap(({ names, runBy }) =>
        names.filter((name) => (runBy === 'CI' ? !CI.includes(`${name}=`) : !runBy.startsWith('hand: '))),
      ),
    ).toEqual([]);
  });

  it('have values in CONTRIBUTING.md that CI sets too', () => {
    const names = new Set(rows.flatMap((row) => (row.runBy === 'CI' ? row.names : [])));
    const values = [...read('CONTRIBUTING.md').matchAll(/\b([A-Z][A-Z0-9_]+)=\w+/g)]
      .filter(([, name = '']) => names.has(name))
      .map(([assignment]) => assignment);

    expect(values.length).toBeGreaterThan(0);
    expect(values.filter((assignment) => !CI.includes(assignment))).toEqual([]);
  });
});
