import type { InjectionPlace } from '@slipway/egress-proxy/protocol.js';
import { isLoopbackHost } from '@slipway/common/http/host-allowlist.js';
import { isAzure, modelEndpoint } from '@slipway/common/model-endpoint.js';
import { parseEgressHost } from './egress-rules.js';
import { PUBLIC_GIT_SERVERS, type GitServerAddresses } from '@slipway/git-providers/public-git-servers.js';
import { parseSecretHost, type SecretInjection } from './secret-injection.js';
import type { ProviderType } from '@slipway/git-providers/git-provider.js';

/** Where values are put in, besides Basic credentials. */
export const MODEL_HEADERS = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key'];
export const MODEL_MEMBERS = ['key'];
export const GIT_HEADERS = ['authorization', 'private-token'];

const ANTHROPIC_URL = 'https://api.anthropic.com/v1';
const AZURE_PATHS = ['/openai/*', '/anthropic/*'];

/** None where no model is called; null where the proxy is not on the way: the model is at the sandbox's own loopback. */
export function modelPlaces(model: string, baseUrl: string | null): InjectionPlace[] | null {
  const endpoint = modelEndpoint(model, baseUrl);
  const address = 'problem' in endpoint ? null : URL.parse(endpoint.baseUrl ?? ANTHROPIC_URL);
  if (address === null) {
    return [];
  }
  const paths = isAzure(address.href) ? AZURE_PATHS : [below(address.pathname)];
  return isLoopbackHost(address.hostname) ? null : placeAt(address, paths);
}

/** Providers that stock agent servers call at the same hosts as ours, by the names that both have for them. */
const COMMON_PROVIDERS =
  /^((anthropic|cerebras|deepseek|fireworks_ai|gemini|groq|mistral|openai|openrouter|perplexity|together_ai|xai)\/|gpt-|o\d)/;

/** Of a stock agent server, which appends paths of its own to what it is given; null: it alone knows where, or it is the sandbox's own loopback. */
export function stockModelPlaces(model: string, baseUrl: string | null): InjectionPlace[] | null {
  const places = modelPlaces(model, baseUrl);
  const given = URL.parse(baseUrl ?? '');
  if (places === null || (given === null && !COMMON_PROVIDERS.test(model))) {
    return null;
  }
  return given === null
    ? places.map((place) => ({ ...place, paths: ['/*'] }))
    : [...places, ...placeAt(given, [below(given.pathname)])];
}

/** That its key is in the sandbox in clear. */
export function stockNote(model: string): string {
  return `The key of ${model} is in the sandbox, in clear: only its agent server knows which host it goes to. Store the address in the settings (llm_base_url).`;
}

/**
 * Of one repository: what git and Git LFS ask for, its REST API where that is known, and its files at GitHub.
 * @param hasGraphql GraphQL besides, where no path says which repository a request is for
 */
export function repositoryPlaces(
  provider: ProviderType,
  cloneUrl: string,
  servers: Readonly<Record<string, GitServerAddresses>>,
  hasGraphql: boolean,
): InjectionPlace[] {
  const url = new URL(cloneUrl);
  if (isLoopbackHost(url.hostname)) {
    return [];
  }
  const path = url.pathname.replace(/(\.git)?\/*$/, '');
  const git = placeAt(url, [`${path}.git/*`, `${path}/*`]);
  return [...git, ...apiPlaces(provider, cloneUrl, servers, hasGraphql), ...filePlaces(url.host, path)];
}

function apiPlaces(
  provider: ProviderType,
  cloneUrl: string,
  servers: Readonly<Record<string, GitServerAddresses>>,
  hasGraphql: boolean,
): InjectionPlace[] {
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
  if (api === null) {
    return [];
  }
  const address = new URL(`${api}${resource}`);
  const paths = [address.pathname, below(address.pathname)];
  const graphql = new URL(`${api.replace(/\/v3$/, '')}/graphql`).pathname;
  return placeAt(address, hasGraphql && provider !== 'bitbucket' ? [...paths, graphql] : paths);
}

function filePlaces(host: string, path: string): InjectionPlace[] {
  return host === PUBLIC_GIT_SERVERS.github.host
    ? [
        { host: 'uploads.github.com', paths: [`/repos${path}/*`] },
        { host: 'raw.githubusercontent.com', paths: [`${path}/*`] },
        { host: 'codeload.github.com', paths: [`${path}/*`] },
      ]
    : [];
}

/** Of a secret that names its hosts. */
export function secretPlaces({ hosts, methods, paths }: SecretInjection): InjectionPlace[] {
  return hostPlaces(hosts).map((host) => ({ ...host, ...(methods && { methods }), ...(paths && { paths }) }));
}

/** @param hosts as secrets name theirs */
export function hostPlaces(hosts: readonly string[]): InjectionPlace[] {
  return hosts.flatMap((text) => parseSecretHost(text) ?? []);
}

export function placeAt(address: URL, paths: string[]): InjectionPlace[] {
  const http = /^(http|ws):$/.test(address.protocol) && { http: true };
  return hostAt(address).map((host) => ({ ...host, ...http, paths }));
}

/** None for what is no host, and for a host of a rule: `*.name` would stand for all names below. */
export function hostAt({ host }: URL): Pick<InjectionPlace, 'host' | 'port'>[] {
  const parsed = parseEgressHost(host);
  return parsed === null || parsed.host.startsWith('*.') ? [] : [parsed];
}

export function below(path: string): string {
  return `${path.replace(/\/+$/, '')}/*`;
}
