import type { EgressInjection } from '@slipway/egress-proxy/protocol.js';
import { isLoopbackHost } from '@slipway/common/http/host-allowlist.js';
import { isAzure, modelEndpoint } from '@slipway/common/model-endpoint.js';
import { PUBLIC_GIT_SERVERS, type GitServerAddresses } from '../../../config/git-config.js';
import { parseSecretHost, type SecretInjection } from '../../../settings/secrets/secret-injection.js';
import type { ProviderType } from '../../../git-providers/git-provider.js';

type Place = EgressInjection['hosts'][number];

/** Where values are put in, besides Basic credentials. */
export const MODEL_HEADERS = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key'];
export const MODEL_MEMBERS = ['key'];
export const GIT_HEADERS = ['authorization', 'private-token'];

const ANTHROPIC_URL = 'https://api.anthropic.com/v1';
const AZURE_PATHS = ['/openai/*', '/anthropic/*'];

/** Whether it is the model's key or a git token, whose hosts are open because of it. */
export function opensItsHosts({ model, headers }: EgressInjection): boolean {
  return model !== undefined || headers === GIT_HEADERS;
}

/** None where no model is called; null where the proxy is not on the way: the model is at the sandbox's own loopback. */
export function modelPlaces(model: string, baseUrl: string | null): Place[] | null {
  const endpoint = modelEndpoint(model, baseUrl);
  const address = 'problem' in endpoint ? null : URL.parse(endpoint.baseUrl ?? ANTHROPIC_URL);
  if (address === null) {
    return [];
  }
  const paths = isAzure(address.href) ? AZURE_PATHS : [below(address.pathname)];
  return isLoopbackHost(address.hostname) ? null : [placeAt(address, paths)];
}

/** Of one repository: what git and Git LFS ask for, its REST API where that is known, and its files at GitHub. */
export function repositoryPlaces(
  provider: ProviderType,
  cloneUrl: string,
  servers: Readonly<Record<string, GitServerAddresses>>,
): Place[] {
  const url = new URL(cloneUrl);
  if (isLoopbackHost(url.hostname)) {
    return [];
  }
  const path = url.pathname.replace(/(\.git)?\/*$/, '');
  const git = placeAt(url, [`${path}.git/*`, `${path}/*`]);
  return [git, ...apiPlaces(provider, cloneUrl, servers), ...filePlaces(url.host, path)];
}

function apiPlaces(
  provider: ProviderType,
  cloneUrl: string,
  servers: Readonly<Record<string, GitServerAddresses>>,
): Place[] {
  const server = servers[provider];
  const isPublic = server !== undefined && cloneUrl.startsWith(`${server.cloneUrl}/`);
  const root = isPublic ? server.cloneUrl : new URL(cloneUrl).origin;
  const name = cloneUrl.slice(root.length + 1).replace(/(\.git)?\/*$/, '');
  const forms: Partial<Record<ProviderType, [own: string | null, resource: string]>> = {
    github: [`${root}/api/v3`, `/repos/${name}`],
    gitlab: [`${root}/api`, `/v4/projects/${encodeURIComponent(name)}`],
    // Data Center's API has other names of repositories.
    bitbucket: [null, `/repositories/${name}`],
  };
  const [own, resource] = forms[provider] ?? [null, ''];
  const api = isPublic ? server.apiUrl : own;
  const address = api === null ? null : new URL(`${api}${resource}`);
  return address === null ? [] : [placeAt(address, [address.pathname, below(address.pathname)])];
}

function filePlaces(host: string, path: string): Place[] {
  return host === PUBLIC_GIT_SERVERS.github.host
    ? [
        { host: 'uploads.github.com', paths: [`/repos${path}/*`] },
        { host: 'raw.githubusercontent.com', paths: [`${path}/*`] },
        { host: 'codeload.github.com', paths: [`${path}/*`] },
      ]
    : [];
}

/** Of a secret that names its hosts. */
export function secretPlaces({ hosts, methods, paths }: SecretInjection): Place[] {
  return hosts.flatMap((text) => {
    const host = parseSecretHost(text);
    return host === null ? [] : [{ ...host, ...(methods && { methods }), ...(paths && { paths }) }];
  });
}

export function placeAt({ hostname, port, protocol }: URL, paths: string[]): Place {
  return {
    host: hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, ''),
    ...(port !== '' && { port: Number(port) }),
    ...(/^(http|ws):$/.test(protocol) && { http: true }),
    paths,
  };
}

export function below(path: string): string {
  return `${path.replace(/\/+$/, '')}/*`;
}
