import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { BOUNDED_PARSERS, parsesText } from './lib/bounded-parsers.mjs';
import { comparedOwners } from './lib/compared-owners.mjs';
import { circlesOf } from './lib/import-circles.mjs';
import { COMMAND_LINES } from './lib/command-lines.ts';

COMMAND_LINES['scripts/check-house.mjs'].parse();
/**
 * Measures the structure of `src` and `packages` against what CONTRIBUTING.md promises. The bounds stop drift and are not targets.
 */
const ROOT = fileURLToPath(new URL('..', import.meta.url));

const BOUNDS = {
  files: 880,
  medianLinesAtLeast: 115,
  linesAtMost: 400,
  looseFilesInAFolder: 26,
  smallFiles: 9,
  foreignReads: 4,
  filesOfATable: 4,
  circles: 0,
  linesOfAnOperation: 60,
  kilobytesOfOpenApi: 640,
  linesOfTheConsole: 5600,
  linesOfTheCommands: 1560,
};

/** A file below this many lines has to be of a kind that is small by nature. */
const SMALL_LINES = 20;
const SMALL_BY_NATURE =
  /(\.(module|entity|guard|decorator|descriptor|error|controller)|\/main|\/keys|\/slipway|\/sandbox-backends|\/migrations(\/[\w-]+)?)\.ts$/;

/** More than this, and a class does two things. */
const MANY_DEPENDENCIES = 8;

/** The folder that owns each table: only its repositories and queries hold SQL on it. */
const TABLE_OWNERS = {
  users: 'auth',
  api_keys: 'auth',
  sessions: 'auth',
  user_identities: 'auth',
  issuer_logouts: 'auth',
  device_logins: 'auth',
  audit_entries: 'audit',
  settings: 'settings',
  llm_profiles: 'settings',
  custom_secrets: 'settings',
  mcp_configs: 'settings',
  provider_tokens: 'git-providers',
  sandboxes: 'v1/sandboxes',
  sandbox_hosts: 'v1/sandboxes',
  orphaned_sandboxes: 'v1/sandboxes',
  warm_sandboxes: 'v1/sandboxes',
  egress_requests: 'v1/egress',
  egress_permits: 'v1/egress',
  egress_denials: 'v1/events',
  egress_meters: 'v1/egress',
  model_usage: 'usage',
  sandbox_placeholders: 'v1/app-conversations',
  app_conversations: 'v1/app-conversations',
  app_conversation_start_tasks: 'v1/app-conversations',
  removed_conversations: 'v1/app-conversations',
  pending_messages: 'v1/app-conversations',
  followed_pull_requests: 'v1/app-conversations',
  kept_changes: 'v1/app-conversations',
  conversation_events: 'v1/events',
  followed_conversations: 'v1/events',
  idempotency_keys: 'v1/idempotency',
  service_state: 'database',
  webhook_endpoints: 'outbound-webhooks',
  webhook_deliveries: 'outbound-webhooks',
  push_subscriptions: 'outbound-webhooks',
  push_messages: 'outbound-webhooks',
  automations: 'automations',
  automation_runs: 'automations',
  automation_webhooks: 'automations',
  automation_events: 'automations',
  automation_event_bodies: 'automations',
};
const HOLDS_SQL = /\.(repository|queries)\.ts$/;

/** Classes by the decorator that makes them what they are, and the role in their file's name. */
const ROLES = { Controller: 'controller', Module: 'module', Entity: 'entity', Catch: 'filter' };

/** Functions that draw, over the public API only: its size is all that is measured here. */
const CONSOLE = 'packages/console/';

const files = globSync('{src,packages/*/src}/**/*.ts', { cwd: ROOT })
  .map((name) => name.split(path.sep).join('/'))
  .filter((name) => !name.startsWith(CONSOLE) && !/\.(spec|contract|harness)\.ts$/.test(name))
  .toSorted()
  .map((name) => {
    const text = readFileSync(path.join(ROOT, name), 'utf8');
    return {
      name: name.replace(/^src\//, ''),
      text,
      lines: text.trimEnd().split('\n').length,
      tree: ts.createSourceFile(name, text, ts.ScriptTarget.ES2023, true),
    };
  });

const findings = [
  ...size(),
  ...edge(),
  ...consoleSize(),
  ...commandsSize(),
  ...looseFiles(),
  ...roles(),
  ...duplicateNames(),
  ...tablesWithoutOwner(),
  ...foreignSql(),
  ...comparedOwners(files, row),
  ...unboundedParsers(),
  ...dependencies(),
  ...circles(),
];
findings.forEach((finding) => process.stderr.write(`${finding}\n`));
process.exitCode = findings.length === 0 ? 0 : 1;

function size() {
  const sorted = files.map(({ lines }) => lines).toSorted((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)];
  const small = files.filter(({ name, lines }) => lines < SMALL_LINES && !SMALL_BY_NATURE.test(`/${name}`));
  const large = files.filter(({ lines }) => lines > BOUNDS.linesAtMost);
  row('source files', files.length, `at most ${BOUNDS.files}`);
  row('median lines', median, `at least ${BOUNDS.medianLinesAtLeast}`);
  row(
    `files under ${SMALL_LINES} lines that are not small by nature`,
    small.length,
    `at most ${BOUNDS.smallFiles}`,
  );
  row('longest file, lines', sorted.at(-1), `at most ${BOUNDS.linesAtMost}`);
  return [
    ...(files.length > BOUNDS.files || median < BOUNDS.medianLinesAtLeast
      ? [
          'Files have become closets: put what changes together into one file, a concept with its types, errors and helpers.',
        ]
      : []),
    ...(small.length > BOUNDS.smallFiles
      ? [`Merge into the file that uses them: ${small.map(({ name }) => name).join(', ')}`]
      : []),
    ...large.map(
      ({ name, lines }) =>
        `${name} has ${lines} lines: find the two reasons to change, and cut between them.`,
    ),
  ];
}

/** Controllers and DTOs, for each operation, and the document about them as it is served. */
function edge() {
  const document = JSON.parse(readFileSync(path.join(ROOT, 'openapi.json'), 'utf8'));
  const operations = Object.values(document.paths).flatMap((item) => Object.keys(item)).length;
  const lines = files
    .filter(({ name }) => /\.(controller|dto)\.ts$/.test(name))
    .reduce((sum, file) => sum + file.lines, 0);
  const each = Math.round(lines / operations);
  const kilobytes = Math.round(Buffer.byteLength(JSON.stringify(document)) / 1000);
  row('lines of controllers and DTOs for an operation', each, `at most ${BOUNDS.linesOfAnOperation}`);
  row('openapi.json as served, kB', kilobytes, `at most ${BOUNDS.kilobytesOfOpenApi}`);
  return [
    ...(each > BOUNDS.linesOfAnOperation
      ? [
          'Routes have become long: say once what several of them share, and leave to the builder what follows.',
        ]
      : []),
    ...(kilobytes > BOUNDS.kilobytesOfOpenApi
      ? ['openapi.json has become large: find what it says many times, and write it once in its components.']
      : []),
  ];
}

function consoleSize() {
  const lines = globSync(`${CONSOLE}src/**/*.{ts,tsx}`, { cwd: ROOT })
    .map((name) => readFileSync(path.join(ROOT, name), 'utf8').trimEnd().split('\n').length)
    .reduce((sum, each) => sum + each, 0);
  row('lines of the console', lines, `at most ${BOUNDS.linesOfTheConsole}`);
  return lines > BOUNDS.linesOfTheConsole
    ? ['The console has become large: it is a page over the API; what several pages do belongs into its ui/.']
    : [];
}

function commandsSize() {
  const lines = files
    .filter(({ name }) => name.startsWith('cli/'))
    .reduce((sum, file) => sum + file.lines, 0);
  row('lines of the commands', lines, `at most ${BOUNDS.linesOfTheCommands}`);
  return lines > BOUNDS.linesOfTheCommands
    ? ['The commands have become large: each is a request or two of the public API, and a few lines of text.']
    : [];
}

function looseFiles() {
  const byFolder = Map.groupBy(files, ({ name }) => path.posix.dirname(name));
  // One after the other, and all alike.
  byFolder.delete('database/migrations');
  const largest = [...byFolder].toSorted(([, a], [, b]) => b.length - a.length);
  row(
    'loose files in the fullest folder',
    `${largest[0][1].length} (${largest[0][0]})`,
    `at most ${BOUNDS.looseFilesInAFolder}`,
  );
  return largest
    .filter(([, inside]) => inside.length > BOUNDS.looseFilesInAFolder)
    .map(
      ([folder, inside]) =>
        `${folder} holds ${inside.length} loose files: give what belongs together a folder with a name that a newcomer can guess.`,
    );
}

function roles() {
  const misplaced = classes().flatMap(({ file, node }) =>
    decoratorNames(node)
      .filter(
        (name) => ROLES[name] && !file.name.endsWith(`.${ROLES[name]}.ts`) && !isBesideAnother(file, node),
      )
      .map(
        (name) => `${file.name}: ${node.name?.text} is a ${name}; call the file <noun>.${ROLES[name]}.ts.`,
      ),
  );
  row('classes whose file does not say their role', misplaced.length, 'none');
  return misplaced;
}

/** A module or an entity beside the one class that it serves needs no file of its own. */
function isBesideAnother(file, node) {
  return file.tree.statements.some(
    (statement) =>
      ts.isClassDeclaration(statement) &&
      statement !== node &&
      !decoratorNames(statement).includes(decoratorNames(node)[0]),
  );
}

function duplicateNames() {
  const exported = files.flatMap((file) =>
    file.tree.statements
      .filter(
        (statement) =>
          ts.canHaveModifiers(statement) &&
          ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword),
      )
      .flatMap((statement) =>
        ts.isVariableStatement(statement)
          ? statement.declarationList.declarations.map(({ name }) => name.getText(file.tree))
          : [statement.name?.text],
      )
      .map((name) => ({ name, file: file.name, world: worldOf(file.name) })),
  );
  const twice = [...Map.groupBy(exported, ({ name, world }) => `${world} ${name}`)]
    .map(([, all]) => [all[0].name, [...new Set(all.map(({ file }) => file))]])
    .filter(([name, all]) => name !== undefined && all.length > 1);
  const sameFile = [
    ...Map.groupBy(
      // The service and the agent server are programs of their own.
      files.filter(({ name }) => path.posix.basename(name) !== 'main.ts'),
      ({ name }) => `${worldOf(name)} ${path.posix.basename(name)}`,
    ),
  ]
    .filter(([, all]) => all.length > 1)
    .map(([, all]) => [path.posix.basename(all[0].name), all]);
  row('names that are exported by two files', twice.length, 'none');
  row('file names that stand twice', sameFile.length, 'none');
  return [
    ...twice.map(([name, all]) => `${name} is exported by ${all.join(' and ')}: one name, one thing.`),
    ...sameFile.map(
      ([name, all]) => `${all.map((file) => file.name).join(' and ')}: give ${name} two names.`,
    ),
  ];
}

/** The scope in which a name must be unique: each git host's folder uses the same names. */
function worldOf(file) {
  return /^packages\/git-providers\/src\/[\w-]+\//.exec(file)?.[0] ?? 'product';
}

function tablesWithoutOwner() {
  const created = files
    .filter(({ name }) => name.startsWith('database/migrations/'))
    .flatMap(({ text }) => [...text.matchAll(/\bCREATE TABLE (\w+) \(/g)].map(([, table]) => table));
  const ownerless = [...new Set(created)].filter((table) => !Object.hasOwn(TABLE_OWNERS, table));
  row('tables without an owner', ownerless.length, 'none');
  return ownerless.map((table) => `${table} has no owner: name the folder that owns it in TABLE_OWNERS.`);
}

function foreignSql() {
  const names = Object.keys(TABLE_OWNERS).join('|');
  const statement = new RegExp(`\\b(?:FROM|JOIN|UPDATE|INTO)\\s+(${names})\\b`, 'g');
  const uses = files
    .filter(({ name }) => !name.startsWith('database/migrations/'))
    .flatMap((file) =>
      [...new Set([...withoutComments(file.text).matchAll(statement)].map((match) => match[1]))].map(
        (table) => ({ file: file.name, table }),
      ),
    );
  const foreign = uses.filter(
    ({ file, table }) => !(HOLDS_SQL.test(file) && file.startsWith(`${TABLE_OWNERS[table]}/`)),
  );
  const byTable = [...Map.groupBy(uses, ({ table }) => table)].toSorted(
    ([, a], [, b]) => b.length - a.length,
  );
  // A statement may join another feature's table if a second round trip would cost more than the rule is worth.
  const joins = foreign.filter(({ file }) => HOLDS_SQL.test(file));
  const loose = foreign.filter(({ file }) => !HOLDS_SQL.test(file));
  row('files with SQL that are no repository', new Set(loose.map(({ file }) => file)).size, 'none');
  row('statements that read a table of another feature', joins.length, `at most ${BOUNDS.foreignReads}`);
  row(
    'files with SQL on one table',
    `${byTable[0][1].length} (${byTable[0][0]})`,
    `at most ${BOUNDS.filesOfATable}`,
  );
  return [
    ...byTable
      .filter(([, all]) => all.length > BOUNDS.filesOfATable)
      .map(
        ([table, all]) =>
          `${table}: SQL in ${all.map(({ file }) => file).join(', ')}; call its owner instead.`,
      ),
    ...loose.map(
      ({ file, table }) =>
        `${file} holds SQL on ${table}: move it to a .repository.ts or .queries.ts of ${TABLE_OWNERS[table]}, and call that.`,
    ),
    ...(joins.length > BOUNDS.foreignReads
      ? joins.map(({ file, table }) => `${file} reads ${table}: ask ${TABLE_OWNERS[table]} instead.`)
      : []),
  ];
}

function unboundedParsers() {
  const listed = Object.values(BOUNDED_PARSERS).flat();
  const parsing = globSync('{src,packages/*/src}/**/*.{ts,tsx}', { cwd: ROOT })
    .map((name) => name.split(path.sep).join('/'))
    .filter((name) => !/\.(spec|contract|harness)\.ts$/.test(name))
    .filter((name) => {
      const text = readFileSync(path.join(ROOT, name), 'utf8');
      return parsesText(ts.createSourceFile(name, text, ts.ScriptTarget.ES2023, true));
    });
  const unbounded = parsing.filter((name) => !listed.includes(name));
  row('files that parse text without a bound', unbounded.length, 'none');
  return [
    ...unbounded.map(
      (name) =>
        `${name} parses text: bound it before, and name the file with its bound in scripts/lib/bounded-parsers.mjs.`,
    ),
    ...listed
      .filter((name) => !parsing.includes(name))
      .map((name) => `${name} parses nothing: take it out of scripts/lib/bounded-parsers.mjs.`),
  ];
}

/** What a constructor is given, by Nest or for a class of a package by its user; one that needs more does two things. */
function dependencies() {
  const counted = classes()
    .map(({ file, node }) => ({
      name: `${node.name?.text} (${file.name})`,
      count: node.members.find(ts.isConstructorDeclaration)?.parameters.length ?? 0,
    }))
    .toSorted((a, b) => b.count - a.count);
  const many = counted.filter(({ count }) => count > MANY_DEPENDENCIES);
  row(`classes with more than ${MANY_DEPENDENCIES} dependencies (${counted[0].count})`, many.length, 'none');
  return many.map(
    ({ name, count }) => `${name} has ${count} dependencies: find the two things that it does.`,
  );
}

function circles() {
  const found = circlesOf(files);
  row('circles of imports, types included', found.length, `at most ${BOUNDS.circles}`);
  return found
    .slice(0, found.length > BOUNDS.circles ? found.length : 0)
    .map((circle) => `${circle.join(', ')} import each other: move what they share below them.`);
}

function classes() {
  return files.flatMap((file) =>
    file.tree.statements.filter(ts.isClassDeclaration).map((node) => ({ file, node })),
  );
}

function decoratorNames(node) {
  return (ts.getDecorators(node) ?? []).map(({ expression }) =>
    (ts.isCallExpression(expression) ? expression.expression : expression).getText(),
  );
}

function withoutComments(text) {
  return text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
}

function row(measure, today, bound) {
  process.stdout.write(`${measure.padEnd(58)}${String(today).padStart(34)}   ${bound}\n`);
}
