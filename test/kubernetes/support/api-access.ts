import { parse } from 'yaml';
import { jsonList } from '@slipway/common/json-access.js';

/** What a request asks of the API server, in the words of its authorisation. */
export interface ApiAccess {
  verb: string;
  group: string;
  /** With a subresource: `pods/attach`. */
  resource: string;
  namespace: string | null;
  name: string | null;
}

const VERBS: Record<string, string> = { POST: 'create', PUT: 'update', PATCH: 'patch' };

/**
 * What the API server authorises for a request. One that opens a WebSocket is a GET and needs the right to create as well,
 * where something is run or connected by it; a path of no resource needs none of a Role.
 */
export function accessesOf(method: string, url: string, isUpgrade: boolean): ApiAccess[] {
  const { pathname, searchParams } = new URL(url, 'http://api');
  const parsed =
    /^\/(?:api\/v1|apis\/(?<group>[^/]+)\/[^/]+)(?:\/namespaces\/(?<namespace>[^/]+))?\/(?<resource>[^/]+)(?:\/(?<name>[^/]+)(?:\/(?<sub>[^/]+))?)?/.exec(
      pathname,
    );
  if (parsed?.groups === undefined) {
    return [];
  }
  const { group = '', namespace = null, resource = '', name = null, sub } = parsed.groups;
  const access = { group, namespace, name, resource: sub === undefined ? resource : `${resource}/${sub}` };
  const isWatch = ['true', '1'].includes(searchParams.get('watch') ?? '');
  const verb = verbOf(method, name !== null, isWatch);
  return isUpgrade && sub !== undefined && sub !== 'proxy'
    ? [
        { ...access, verb },
        { ...access, verb: 'create' },
      ]
    : [{ ...access, verb }];
}

function verbOf(method: string, isNamed: boolean, isWatch: boolean): string {
  if (method === 'GET' || method === 'HEAD') {
    return isWatch ? 'watch' : isNamed ? 'get' : 'list';
  }
  if (method === 'DELETE') {
    return isNamed ? 'delete' : 'deletecollection';
  }
  return VERBS[method] ?? method.toLowerCase();
}

/** A right as one line: `agents.x-k8s.io sandboxes: create`. */
export function rightOf({ group, resource, verb }: Pick<ApiAccess, 'group' | 'resource' | 'verb'>): string {
  return `${group} ${resource}: ${verb}`.trim();
}

/** All rights that a Role gives, one line each. */
export function rightsOfRole(yaml: string): string[] {
  const texts = (value: unknown, name: string) => jsonList(value, name).map(String);
  return jsonList(parse(yaml), 'rules').flatMap((rule) =>
    texts(rule, 'apiGroups').flatMap((group) =>
      texts(rule, 'resources').flatMap((resource) =>
        texts(rule, 'verbs').map((verb) => rightOf({ group, resource, verb })),
      ),
    ),
  );
}
