// Checks the licenses of all packages of the service, the agent server and the egress proxy. With --sbom, writes an SBOM (CycloneDX) to
// standard output instead. Packages are those of the lockfile, whether this platform needs them or not.
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { COMMAND_LINES } from './lib/command-lines.ts';

const { sbom } = COMMAND_LINES['scripts/licenses.mjs'].parse().opts();

/**
 * Licenses that require nothing but a copy of their text, which packages contain and bundles collect
 * (scripts/bundle.mjs).
 */
const ALLOWED = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'CC0-1.0',
  'ISC',
  'MIT',
  // `web-push` is used as it is: its own files alone would have to be published if we changed them.
  'MPL-2.0',
  // `argparse` is loaded only by the command line of markdown-it.
  'PSF-2.0',
  'Unlicense',
]);
/** Licenses of packages whose entry in the lockfile names none, taken from reading their LICENSE files. */
const READ_BY_HAND = {
  buildcheck: 'MIT',
  'cpu-features': 'MIT',
  'read-tls-client-hello': 'Apache-2.0',
  ssh2: 'MIT',
};

const root = fileURLToPath(new URL('..', import.meta.url));
const { status, stdout, stderr } = spawnSync(
  'npm',
  ['sbom', '--package-lock-only', '--omit=dev', '--sbom-format=cyclonedx', '--sbom-type=application'],
  { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
);
if (status !== 0) {
  throw new Error(`npm sbom failed: ${stderr}`);
}
if (sbom) {
  process.stdout.write(stdout);
} else {
  check(JSON.parse(stdout).components.filter(isForeign));
}

function check(components) {
  const counts = new Map();
  const refused = [];
  for (const { name, group, version, licenses = [] } of components) {
    const packageName = group === undefined ? name : path.posix.join(group, name);
    const [stated = READ_BY_HAND[packageName] ?? 'none'] = licenses.map(
      ({ license, expression }) => expression ?? license.id ?? license.name,
    );
    counts.set(stated, (counts.get(stated) ?? 0) + 1);
    if (!isAllowed(stated)) {
      refused.push(`${packageName}@${version}: ${stated}`);
    }
  }
  const sorted = [...counts].toSorted(([, a], [, b]) => b - a);
  process.stdout.write(
    `${components.length} packages: ${sorted.map(([name, count]) => `${name} ${count}`).join(', ')}\n`,
  );
  if (refused.length > 0) {
    process.stderr.write(
      `Read the licenses of these packages, then allow them in scripts/licenses.mjs or replace the package:\n${refused.join('\n')}\n`,
    );
    process.exitCode = 1;
  }
}

/** Whether a component is not one of the packages in this repository. */
function isForeign({ 'bom-ref': reference }) {
  return !reference.startsWith('@slipway/');
}

/**
 * Requires one of the licenses joined by OR to be allowed, and all of those joined by AND. SPDX expressions here never
 * nest deeper.
 */
function isAllowed(expression) {
  const parts = expression.replaceAll(/[()]/g, '');
  return parts.includes(' AND ')
    ? parts.split(' AND ').every((part) => ALLOWED.has(part))
    : parts.split(' OR ').some((part) => ALLOWED.has(part));
}
