import { z } from 'zod';
import type { McpServerEntry } from '@slipway/agent-protocol/conversation-api.js';
import { isLoopbackHost } from '@slipway/common/http/host-allowlist.js';
import type { EgressInjection } from '@slipway/egress-proxy/protocol.js';
import { below, placeAt } from './credential-places.js';

export const toolSourceSchema = z.object({
  kind: z.literal('tool'),
  /** Null: the search. */
  server: z.string().nullable(),
  /** Without its query. */
  address: z.string(),
  /** A header in lower case, or `?name` of the query; `?name#1` where that is there a second time. */
  member: z.string(),
});

/** A key of a tool server that has an address, or of the search. */
export interface ToolCredential extends Pick<EgressInjection, 'value' | 'hosts' | 'headers' | 'query'> {
  source: z.infer<typeof toolSourceSchema>;
}

const TOKEN = /^(?:[A-Za-z][\w-]* +)?(\S+)$/;
/** HTTP has a meaning for them, so programs read them. */
const OPEN_HEADERS = /^(accept|accept-.*|content-.*|user-agent|host|origin|referer|connection|mcp-.*)$/;

/** All headers and members of queries count as keys: what a host takes for one is its own affair. */
export function toolCredentials(servers: Readonly<Record<string, McpServerEntry>>): ToolCredential[] {
  return Object.entries(servers).flatMap(([server, { url: text = '', transport, headers }]) => {
    const url = URL.parse(text);
    // Where messages go, a server of this kind says itself.
    const hosts =
      url === null ? [] : toolPlaces(url, transport === 'sse' ? ['/*'] : [url.pathname, below(url.pathname)]);
    if (url === null || hosts.length === 0) {
      return [];
    }
    const source = (member: string): ToolCredential['source'] => ({
      kind: 'tool',
      server,
      address: `${url.origin}${url.pathname}`,
      member,
    });
    const sent = Object.entries(headers ?? {})
      .map(([name, value]) => [name.toLowerCase(), TOKEN.exec(value)?.[1] ?? value] as const)
      .filter(([name]) => !OPEN_HEADERS.test(name));
    return [
      ...sent.map(([name, value]) => ({ source: source(name), value, hosts, headers: [name] })),
      ...[...url.searchParams].map(([name, value], index, all) => ({
        source: source(`?${name}${repetition(name, all.slice(0, index))}`),
        value,
        hosts,
        headers: [],
        query: [name],
      })),
    ];
  });
}

function repetition(name: string, before: readonly (readonly [string, string])[]): string {
  const count = before.filter(([other]) => other === name).length;
  return count === 0 ? '' : `#${count}`;
}

export function searchCredential(apiUrl: string, key: string | null): ToolCredential[] {
  const url = URL.parse(apiUrl);
  const hosts = url === null ? [] : toolPlaces(url, [below(url.pathname)]);
  const source = { kind: 'tool' as const, server: null, address: apiUrl, member: 'authorization' };
  return key === null || hosts.length === 0
    ? []
    : [{ source, value: key, hosts, headers: ['authorization'] }];
}

/** None where no proxy is on the way. */
function toolPlaces(url: URL, paths: string[]): ToolCredential['hosts'] {
  return isLoopbackHost(url.hostname) ? [] : placeAt(url, paths);
}

/** A server with what stands for each of its keys; a key for which that is null stays. */
export async function concealedServer(
  name: string,
  server: McpServerEntry,
  shown: (credential: ToolCredential) => Promise<string | null>,
): Promise<McpServerEntry> {
  const concealed = { ...server };
  const members = [...(URL.parse(server.url ?? '')?.searchParams ?? [])];
  let position = 0;
  for (const credential of toolCredentials({ [name]: server })) {
    const {
      value,
      query: [member] = [],
      headers: [header],
    } = credential;
    const text = await shown(credential);
    const index = member === undefined ? -1 : position++;
    if (text !== null && member !== undefined && concealed.url !== undefined) {
      members[index] = [member, text];
      const url = new URL(concealed.url);
      url.search = new URLSearchParams(members).toString();
      concealed.url = url.href;
    } else if (text !== null) {
      const all = Object.entries(concealed.headers ?? {});
      concealed.headers = Object.fromEntries(
        all.map(([own, given]) => [
          own,
          own.toLowerCase() === header ? given.replace(value, () => text) : given,
        ]),
      );
    }
  }
  return concealed;
}

/** A server without a name is called by its position, which may be another one now. */
export function currentTool(
  tools: readonly ToolCredential[],
  { server, address, member }: ToolCredential['source'],
): ToolCredential | undefined {
  const same = tools.filter(
    ({ source }) =>
      source.address === address &&
      source.member === member &&
      (source.server === null) === (server === null),
  );
  return same.find(({ source }) => source.server === server) ?? same[0];
}

export function toolInjection(placeholder: string, tool: ToolCredential | undefined): EgressInjection[] {
  if (tool === undefined) {
    return [];
  }
  const { source: _, ...injection } = tool;
  return [{ placeholder, ...injection }];
}
