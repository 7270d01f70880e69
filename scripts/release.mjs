// Builds what a release consists of into `release/`: npm run release -- VERSION [--dry-run]
// Without --dry-run it checks the tree first, stamps the version, and builds the image where Docker is there.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  createWriteStream,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { createGzip } from 'node:zlib';
import tar from 'tar-stream';
import { buildIfNeeded } from './lib/build.mjs';
import { COMMAND_LINES } from './lib/command-lines.ts';

const SEMANTIC = /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/;
const CHART = 'deploy/helm/slipway';

const root = fileURLToPath(new URL('..', import.meta.url));
const at = (...parts) => path.join(root, ...parts);
const release = at('release');

const commandLine = COMMAND_LINES['scripts/release.mjs'].parse();
const { dryRun } = commandLine.opts();
const [version] = commandLine.processedArgs;
if (!SEMANTIC.test(version)) {
  fail(`"${version}" is no version such as 1.2.3`);
}
if (!dryRun) {
  checkTree();
  stamp();
}
rmSync(release, { recursive: true, force: true });
mkdirSync(release);
if (!buildIfNeeded()) {
  process.exit(1);
}
packService();
packClient();
await packChart();
cpSync(at('openapi.json'), path.join(release, 'openapi.json'));
writeFileSync(
  path.join(release, 'sbom.cdx.json'),
  run(process.execPath, [at('scripts/licenses.mjs'), '--sbom']),
);
if (!dryRun) {
  buildImage();
}
writeSums();
process.stdout.write(`${readdirSync(release).join('\n')}\n`);

function checkTree() {
  if (run('git', ['status', '--porcelain']) !== '') {
    fail('There are uncommitted changes: commit them first, or use --dry-run');
  }
  if (!readFileSync(at('CHANGELOG.md'), 'utf8').includes(`\n## [${version}]`)) {
    fail(`CHANGELOG.md has no section [${version}]: rename [Unreleased], see docs/releasing.md`);
  }
  const due = run(at('.ci/full-due'), []);
  if (due !== '') {
    fail(`.ci/full has not been green since these changed; run it, and commit .ci/full.passed:\n${due}`);
  }
  const { status } = spawnSync('npm', ['run', 'check'], { cwd: root, stdio: 'inherit' });
  if (status !== 0) {
    fail('npm run check failed');
  }
}

/** Everywhere the version stands; a test compares them. */
function stamp() {
  run('npm', ['version', version, '--no-git-tag-version', '--allow-same-version']);
  replace(`${CHART}/Chart.yaml`, /^(version|appVersion): .*$/gm, `$1: ${version}`);
  replace('Dockerfile', /(org\.opencontainers\.image\.version)=\S+/g, `$1=${version}`);
}

/** The service, the agent server, the egress proxy and the pages, as one npm package that needs nothing but Node.js. */
function packService() {
  const stage = path.join(release, '.stage');
  for (const name of ['service', 'bundle', 'egress-proxy', 'swagger-ui', 'console']) {
    cpSync(at('dist', name), path.join(stage, 'dist', name), { recursive: true });
  }
  for (const name of ['openapi.json', 'CHANGELOG.md']) {
    cpSync(at(name), path.join(stage, name));
  }
  cpSync(at('deploy/package/README.md'), path.join(stage, 'README.md'));
  const { name, description, license, type, engines, optionalDependencies } = readJson(at('package.json'));
  writeJson(path.join(stage, 'package.json'), {
    name,
    version,
    description,
    license,
    type,
    engines,
    bin: { slipway: 'dist/service/slipway.js' },
    // PostgreSQL, and a Node.js that npm puts before one of the machine, which may be too old.
    optionalDependencies,
  });
  run('npm', ['pack', stage, '--pack-destination', release]);
  rmSync(stage, { recursive: true });
}

function packClient() {
  const stage = path.join(release, '.client');
  run(process.execPath, [at('scripts/typescript-client.mjs'), stage]);
  const file = path.join(stage, 'package.json');
  writeJson(file, { ...readJson(file), version });
  run('npm', ['pack', stage, '--pack-destination', release]);
  rmSync(stage, { recursive: true });
}

/** Does what `helm package` does, so that a machine that only builds needs no Helm. */
async function packChart() {
  const archive = tar.pack();
  const folder = at(CHART);
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) {
      const file = path.join(entry.parentPath, entry.name);
      const text = readFileSync(file, 'utf8');
      const name = path.posix.join('slipway', path.relative(folder, file));
      archive.entry(
        { name },
        entry.name === 'Chart.yaml'
          ? text.replaceAll(/^(version|appVersion): .*$/gm, `$1: ${version}`)
          : text,
      );
    }
  }
  archive.finalize();
  await pipeline(
    archive,
    createGzip({ level: 9 }),
    createWriteStream(path.join(release, `slipway-${version}.chart.tgz`)),
  );
}

function buildImage() {
  if (spawnSync('docker', ['version'], { stdio: 'ignore' }).status !== 0) {
    process.stderr.write('No Docker engine answers: no image is built\n');
    return;
  }
  run('docker', ['build', '--tag', `slipway:${version}`, root]);
  run('docker', [
    'save',
    '--output',
    path.join(release, `slipway-${version}.image.tar`),
    `slipway:${version}`,
  ]);
}

function writeSums() {
  const lines = readdirSync(release)
    .toSorted((a, b) => a.localeCompare(b, 'en'))
    .map((name) => {
      const sum = createHash('sha256')
        .update(readFileSync(path.join(release, name)))
        .digest('hex');
      return `${sum}  ${name}\n`;
    });
  writeFileSync(path.join(release, 'SHA256SUMS'), lines.join(''));
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}

function replace(name, pattern, text) {
  writeFileSync(at(name), readFileSync(at(name), 'utf8').replaceAll(pattern, text));
}

function writeJson(file, value) {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}

function run(command, args) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status !== 0) {
    fail(`${[command, ...args].slice(0, 2).join(' ')} failed: ${error?.message ?? stderr}`);
  }
  return stdout;
}

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}
