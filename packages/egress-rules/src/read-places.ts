import type { InjectionPlace } from '@slipway/egress-proxy/protocol.js';
import { isLoopbackHost } from '@slipway/common/http/host-allowlist.js';
import { type GitServerAddresses, PUBLIC_GIT_SERVERS } from '@slipway/git-providers/public-git-servers.js';
import type { ReadablePattern } from './readable-repositories.js';
import { placeAt } from './credential-places.js';

const READING = ['GET', 'HEAD'];

/**
 * Where other repositories are read: clones, archives, files and packages, and nothing that changes one (`git-receive-pack`, the
 * rest of the API). They are patterns alone, so that a proxy that does not know them puts nothing in.
 */
export function readPlaces(
  pattern: ReadablePattern,
  { cloneUrl, apiUrl }: GitServerAddresses,
): InjectionPlace[] {
  const url = new URL(cloneUrl);
  if (isLoopbackHost(url.hostname)) {
    return [];
  }
  const { provider, path, isWide } = pattern;
  const root = url.pathname.replace(/\/$/, '');
  const names = isWide ? [`${root}/${path}/*`] : [`${root}/${path}`, `${root}/${path}.git`];
  const api = new URL(apiUrl);
  return [
    ...at(
      url,
      ['POST'],
      names.map((name) => `${name}/git-upload-pack`),
    ),
    ...at(url, READING, [
      ...names.map((name) => `${name}/info/refs?service=git-upload-pack`),
      ...names.flatMap((name) => FILES[provider].map((each) => `${name}${each}`)),
    ]),
    ...at(api, READING, apiPatterns(pattern, api.pathname.replace(/\/$/, ''))),
    ...(url.host === PUBLIC_GIT_SERVERS.github.host ? githubPlaces(pattern) : []),
  ];
}

function at(address: URL, methods: string[], patterns: string[]): InjectionPlace[] {
  return placeAt(address, []).map((place) => ({ ...place, methods, patterns }));
}

/** Of pages of a repository. */
const FILES: Record<ReadablePattern['provider'], string[]> = {
  github: ['/archive/*', '/raw/*', '/releases/download/*'],
  gitlab: ['/-/archive/*', '/-/raw/*'],
  bitbucket: ['/get/*', '/raw/*'],
};

function below(start: string, ends: readonly string[]): string[] {
  return ends.map((end) => `${start}${end}`);
}

function apiPatterns({ provider, path, isWide }: ReadablePattern, root: string): string[] {
  switch (provider) {
    case 'github': {
      const ends = ['/tarball', '/tarball/*', '/zipball', '/zipball/*', '/contents/*'];
      return below(`${root}/repos/${path}${isWide ? '/*' : ''}`, ends);
    }
    case 'gitlab': {
      const name = encodeURIComponent(path);
      const ends = ['/repository/archive*', '/repository/files/*', '/packages/*'];
      return below(`${root}/v4/projects/${name}${isWide ? '%2F*' : ''}`, ends);
    }
    case 'bitbucket':
      return below(`${root}/repositories/${path}${isWide ? '/*' : ''}`, ['/src/*', '/downloads/*']);
  }
}

function read(host: string, ...patterns: string[]): InjectionPlace[] {
  return at(new URL(`https://${host}`), READING, patterns);
}

/** Files and packages of github.com are at hosts of their own. */
function githubPlaces({ path, isWide }: ReadablePattern): InjectionPlace[] {
  const [owner = ''] = path.split('/');
  const files = `/${path}/*`;
  return [
    ...read('raw.githubusercontent.com', files),
    ...read('codeload.github.com', files),
    ...read('maven.pkg.github.com', files),
    // Packages of npm belong to an owner.
    ...(isWide ? read('npm.pkg.github.com', `/@${owner}/*`, `/@${owner}%2F*`, `/download/@${owner}/*`) : []),
  ];
}
