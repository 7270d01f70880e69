import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { newAuthority } from '../../packages/egress-proxy/src/new-authority.js';
import { namedTlsServer } from '../support/named-tls-server.js';
import { startListening, stopServer } from '../support/start-listening.js';

const run = promisify(execFile);
const NAME = 'tiny-slipway';
const WHEEL = 'tiny_slipway-1.0.0-py3-none-any.whl';
const TARBALL = `/${NAME}/-/${NAME}-1.0.0.tgz`;

interface PackageRegistries {
  /** Of the authority behind their certificates, in PEM. */
  certificate: string;
  /** What was asked for, as `METHOD host/path`. */
  asked: string[];
  /** Their names. */
  names: readonly string[];
  close(): Promise<void>;
}

/**
 * npm's registry and the Python Package Index behind TLS at port 443 of an address, as `npm install` and `pip install` need them, with one package
 * (`tiny-slipway`, which says who gave it) in each.
 */
export async function startPackageRegistries(address: string): Promise<PackageRegistries> {
  const [authority, tarball, wheel] = await Promise.all([
    newAuthority('registries'),
    npmPackage(),
    pythonWheel(),
  ]);
  const packument = {
    name: NAME,
    'dist-tags': { latest: '1.0.0' },
    versions: {
      '1.0.0': {
        name: NAME,
        version: '1.0.0',
        dist: {
          tarball: `https://registry.npmjs.org${TARBALL}`,
          integrity: `sha512-${digest('sha512', tarball, 'base64')}`,
        },
      },
    },
  };
  const file = `https://files.pythonhosted.org/packages/${WHEEL}#sha256=${digest('sha256', wheel, 'hex')}`;
  const resources = new Map<string, { type: string; body: string | Buffer }>([
    [`registry.npmjs.org/${NAME}`, { type: 'application/json', body: JSON.stringify(packument) }],
    [`registry.npmjs.org${TARBALL}`, { type: 'application/octet-stream', body: tarball }],
    [
      `pypi.org/simple/${NAME}/`,
      { type: 'text/html', body: `<!DOCTYPE html><a href="${file}">${WHEEL}</a>` },
    ],
    ['registry.npmjs.org/-/npm/v1/security/advisories/bulk', { type: 'application/json', body: '{}' }],
    [`files.pythonhosted.org/packages/${WHEEL}`, { type: 'application/octet-stream', body: wheel }],
  ]);
  const asked: string[] = [];
  const server = namedTlsServer(authority, ({ method, headers, url = '' }, response) => {
    const name = `${headers.host}${url}`;
    asked.push(`${method} ${name}`);
    const resource = resources.get(name);
    response.writeHead(resource ? 200 : 404, { 'Content-Type': resource?.type ?? 'text/plain' });
    response.end(resource?.body);
  });
  await startListening(server, 443, address);
  return {
    certificate: authority.certificate,
    asked,
    names: [...new Set([...resources.keys()].map((name) => name.replace(/\/.*/, '')))],
    close: async () => stopServer(server),
  };
}

async function npmPackage(): Promise<Buffer> {
  return await built(
    {
      'package/package.json': JSON.stringify({ name: NAME, version: '1.0.0', main: 'index.js' }),
      'package/index.js': "module.exports = 'given by npm';\n",
    },
    'tar',
    ['-czf', 'built', 'package'],
  );
}

async function pythonWheel(): Promise<Buffer> {
  const about = 'tiny_slipway-1.0.0.dist-info';
  const files = {
    'tiny_slipway.py': "said = 'given by pip'\n",
    [`${about}/METADATA`]: `Metadata-Version: 2.1\nName: ${NAME}\nVersion: 1.0.0\n`,
    [`${about}/WHEEL`]: 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    [`${about}/RECORD`]: '',
  };
  return await built(files, 'python3', ['-m', 'zipfile', '-c', 'built', 'tiny_slipway.py', about]);
}

/** What a program makes of files. */
async function built(files: Record<string, string>, program: string, args: string[]): Promise<Buffer> {
  const folder = await mkdtemp(path.join(tmpdir(), 'package-'));
  try {
    for (const [name, content] of Object.entries(files)) {
      await mkdir(path.dirname(path.join(folder, name)), { recursive: true });
      await writeFile(path.join(folder, name), content);
    }
    await run(program, args, { cwd: folder });
    return await readFile(path.join(folder, 'built'));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function digest(algorithm: string, content: Buffer, encoding: 'base64' | 'hex'): string {
  return createHash(algorithm).update(content).digest(encoding);
}
