// Lints openapi.json, and has generators of clients read it: npm run test:openapi. The tools are installed into a folder
// outside the repository, which the variable OPENAPI_TOOLS may name to keep them.
import { execFile } from 'node:child_process';
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { COMMAND_LINES } from './lib/command-lines.ts';

COMMAND_LINES['scripts/test-openapi.mjs'].parse();

const NPM_PACKAGES = ['@redocly/cli@2', '@stoplight/spectral-cli@6', 'openapi-typescript@7'];
const PYTHON_PACKAGES = [
  'openapi-python-client==0.*',
  'datamodel-code-generator==0.*',
  'ruff==0.*',
  'email-validator==2.*',
];
const TIMEOUT_MS = 300_000;
/** Clients of others use these names; an id is a UUID, which is never `webhooks`. */
const PATHS_OF_OTHERS = /`\/api\/automation\/v1\/webhooks\/\{id\}` and `\/api\/automation\/v1\/\{id\}\/\w+`/;
/** The generator knows archives by their general name only. */
const PYTHON_CLIENT_CONFIG = { content_type_overrides: { 'application/zip': 'application/octet-stream' } };

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const document = path.join(root, 'openapi.json');
const kept = process.env['OPENAPI_TOOLS'];
const tools = path.resolve(kept ?? mkdtempSync(path.join(tmpdir(), 'slipway-openapi-')));
const written = mkdtempSync(path.join(tmpdir(), 'slipway-clients-'));
const program = (name) => path.join(tools, 'node_modules', '.bin', name);
const python = (name) => path.join(tools, 'python', 'bin', name);
const inWritten = (...names) => path.join(written, ...names);
const read = (...names) => readFileSync(inWritten(...names), 'utf8');
const events = Object.values(JSON.parse(readFileSync(document, 'utf8')).components.schemas.Event.oneOf).map(
  ({ $ref }) => $ref.split('/').at(-1),
);

/** Browsers are sent on there, and nothing else can happen that is right. */
function redirects([{ pointer }]) {
  const names = pointer.split('/').slice(1);
  const parts = names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
  const responses = parts.reduce((part, name) => part?.[name], JSON.parse(readFileSync(document, 'utf8')));
  return Object.hasOwn(responses ?? {}, '302');
}

const checks = {
  'redocly lint': async () => {
    const output = await run(program('redocly'), [
      'lint',
      '--extends',
      'recommended',
      '--format',
      'json',
      document,
    ]);
    const { problems } = JSON.parse(output);
    expectNone(
      problems
        .filter(({ ruleId, message }) => ruleId !== 'no-ambiguous-paths' || !PATHS_OF_OTHERS.test(message))
        .filter(({ ruleId, location }) => ruleId !== 'operation-2xx-response' || !redirects(location))
        .map(({ ruleId, message, location }) => `${location[0]?.pointer}: ${message} (${ruleId})`),
    );
  },
  'spectral lint': async () => {
    const rules = inWritten('spectral.json');
    writeFileSync(rules, '{"extends":["spectral:oas"]}');
    const output = await run(program('spectral'), ['lint', '--ruleset', rules, '--format', 'json', document]);
    const problems = JSON.parse(output.slice(output.indexOf('[')).replace(/\][^\]]*$/, ']'));
    expectNone(problems.map(({ code, message, path: at }) => `${at.join('/')}: ${message} (${code})`));
  },
  'openapi-typescript': async () => {
    await run(program('openapi-typescript'), [document, '--output', inWritten('types.d.ts')]);
    const text = read('types.d.ts');
    expectEvents((name) => text.includes(`        ${name}: {`) && text.includes(`kind: "${name}";`));
    expectUnion(text, /^ {8}Event: (.*);$/m);
  },
  'hey-api': async () => {
    const { createClient } = await import('@hey-api/openapi-ts');
    await createClient({
      input: document,
      output: inWritten('hey'),
      plugins: ['@hey-api/typescript', '@hey-api/sdk', '@hey-api/client-fetch'],
      logs: { level: 'silent' },
    });
    const text = read('hey', 'types.gen.ts');
    expectEvents((name) => text.includes(`export type ${typeName(name)} =`));
    expectUnion(text, /^export type Event = ([^]*?)\n\n/m);
  },
  'openapi-python-client': async () => {
    const config = inWritten('python-client.json');
    writeFileSync(config, JSON.stringify(PYTHON_CLIENT_CONFIG));
    const output = await run(
      python('openapi-python-client'),
      [
        'generate',
        '--path',
        document,
        '--output-path',
        inWritten('python'),
        '--config',
        config,
        '--meta',
        'none',
      ],
      { PATH: `${python('')}:${process.env['PATH']}` },
    );
    expectNone(output.includes('WARNING') ? [output] : []);
    const models = globSync('python/models/*.py', { cwd: written }).map((name) => read(name));
    expectEvents((name) => models.some((text) => text.includes(`class ${name}:`)));
    expectUnion(read('python', 'models', 'event_page.py'), /^ {4}items: ([^]*?)^ {4}next_page_id:/m);
  },
  'datamodel-codegen': async () => {
    const output = inWritten('models.py');
    await run(python('datamodel-codegen'), [
      `--input=${document}`,
      '--input-file-type=openapi',
      `--output=${output}`,
      '--output-model-type=pydantic_v2.BaseModel',
      '--formatters=builtin',
    ]);
    const text = readFileSync(output, 'utf8');
    expectEvents((name) =>
      new RegExp(`^class ${name}\\(BaseModel\\):\\n    kind: Literal\\['${name}'\\]`, 'm').test(text),
    );
    expectUnion(text, /^class Event\(([^]*?)\):$/m);
    await run(python('python'), [output]);
  },
};

try {
  await install();
  const results = await Promise.all(Object.entries(checks).map(judge));
  const failed = results.filter((isGood) => !isGood).length;
  process.stdout.write(`${results.length - failed} passed, ${failed} failed\n`);
  process.exitCode = failed === 0 ? 0 : 1;
} finally {
  rmSync(written, { recursive: true, force: true });
  if (kept === undefined) {
    rmSync(tools, { recursive: true, force: true });
  }
}

async function install() {
  mkdirSync(tools, { recursive: true });
  if (existsSync(program('redocly')) && existsSync(python('ruff'))) {
    return;
  }
  writeFileSync(path.join(tools, 'package.json'), '{"private":true}');
  await Promise.all([
    run('npm', ['install', '--no-audit', '--no-fund', '--silent', '--ignore-scripts', ...NPM_PACKAGES]),
    run('python3', ['-m', 'venv', 'python']).then(() =>
      run(python('pip'), ['install', '--quiet', ...PYTHON_PACKAGES]),
    ),
  ]);
}

async function judge([name, check]) {
  const before = performance.now();
  try {
    await check();
    process.stdout.write(`passed ${name} (${((performance.now() - before) / 1000).toFixed(1)} s)\n`);
    return true;
  } catch (error) {
    process.stdout.write(`FAILED ${name}: ${error.message}\n`);
    return false;
  }
}

/** Linters exit with 1 when they have found something, which is in their output. */
async function run(file, args, environment = {}) {
  const options = {
    cwd: tools,
    timeout: TIMEOUT_MS,
    maxBuffer: 1 << 26,
    env: { ...process.env, ...environment },
  };
  const { stdout, stderr, code } = await promisify(execFile)(file, args, options).catch((error) => error);
  if (code !== undefined && !(code === 1 && args[0] === 'lint' && stdout !== '')) {
    throw new Error(`${path.basename(file)} ended with ${code}: ${stderr || stdout}`);
  }
  return stdout;
}

function expectNone(problems) {
  if (problems.length > 0) {
    throw new Error(`\n${problems.join('\n')}`);
  }
}

function expectEvents(isThere) {
  expectNone(events.filter((name) => !isThere(name)).map((name) => `${name} has no type of its own`));
}

/** Whether the type of events is a union of all of them. */
function expectUnion(text, pattern) {
  const [, union = ''] = pattern.exec(text) ?? [];
  expectNone(
    events
      .filter((name) => !union.toLowerCase().includes(name.toLowerCase()))
      .map((name) => `no ${name} in the union`),
  );
}

/** Returns the name as the generator writes it, for example `AcpToolCallEvent`. */
function typeName(name) {
  return name.replace(/^[A-Z]+(?=[A-Z][a-z])/, (letters) => `${letters[0]}${letters.slice(1).toLowerCase()}`);
}
