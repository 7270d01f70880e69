import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { startListening, stopServer } from '../support/start-listening.js';

interface FakeObject {
  metadata: Record<string, unknown>;
  [member: string]: unknown;
}

/** What happens to a request instead of its response. */
export type KubernetesFault =
  | { kind: 'status'; status: number; reason?: string; message?: string; headers?: Record<string, string> }
  | { kind: 'reset' }
  /** A proxy ends a watch at once, as if the API server had. */
  | { kind: 'empty' }
  /** Does what was asked, and breaks off before it says so. */
  | { kind: 'lose-response' };

/**
 * An API server over real HTTP with the two kinds of objects that sandboxes consist of, and a controller that makes the pod
 * of each Sandbox at once. There are no containers: `/alive` is not asked.
 */
export class FakeKubernetes {
  readonly objects = new Map<string, FakeObject>();
  /** Method and path of each request. */
  readonly requests: string[] = [];
  /** Statuses of the pods that are made next, before `podStatus`. */
  readonly nextPodStatuses: object[] = [];
  /** The body of a pod's status once it is made. */
  podStatus: object = {
    phase: 'Running',
    podIP: '127.0.0.9',
    containerStatuses: [{ name: 'agent', state: { running: {} } }],
  };
  /** Rights that the client lacks, as `create pods/attach`; they are only said, the requests succeed. */
  readonly lacking = new Set<string>();
  /** The only one that is accepted; a real one expires after an hour. */
  token = 'a-token';
  readonly #faults: { match: (request: string) => boolean; fault: KubernetesFault; left: number }[] = [];
  readonly #watches = new Set<{ path: string; response: ServerResponse }>();
  readonly #history: { version: number; path: string; line: string }[] = [];
  readonly #server: Server;
  #version = 100;

  constructor() {
    this.#server = createServer((request, response) => {
      this.#respond(request, response).catch((error: unknown) =>
        response.destroy(error instanceof Error ? error : undefined),
      );
    });
  }

  async listen(port = 0): Promise<number> {
    return await startListening(this.#server, port);
  }

  /** Goes away in the middle of whatever it does. */
  async close(): Promise<void> {
    this.#watches.clear();
    await stopServer(this.#server);
  }

  /** The next requests like this one fail. */
  fail(match: (request: string) => boolean, fault: KubernetesFault, times = 1): void {
    this.#faults.push({ match, fault, left: times });
  }

  /** A configuration that leads here. */
  static kubeconfig(port: number, token = 'a-token', user: object = { token }): string {
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        { name: 'fake', cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } },
      ],
      users: [{ name: 'fake', user }],
      contexts: [{ name: 'fake', context: { cluster: 'fake', user: 'fake' } }],
      'current-context': 'fake',
    });
  }

  get watching(): number {
    return this.#watches.size;
  }

  /** Sends text to every watch as it is: half an event, or an error. */
  sendToWatches(text: string): void {
    this.#watches.forEach(({ response }) => response.write(text));
  }

  breakWatches(): void {
    this.#watches.forEach(({ response }) => response.destroy());
  }

  /** Stores an object as the cluster would, and tells the watches unless they are to miss it. */
  put(path: string, object: FakeObject, silently = false): FakeObject {
    this.#version += 1;
    const known = this.objects.get(path);
    const stored = {
      ...object,
      metadata: {
        uid: `uid-${this.#version}`,
        creationTimestamp: new Date().toISOString(),
        ...object.metadata,
        resourceVersion: String(this.#version),
      },
    };
    this.objects.set(path, stored);
    if (!silently) {
      this.#tell(path, known === undefined ? 'ADDED' : 'MODIFIED', stored);
    }
    return stored;
  }

  remove(path: string): void {
    const known = this.objects.get(path);
    this.objects.delete(path);
    if (known) {
      this.#version += 1;
      this.#tell(path, 'DELETED', {
        ...known,
        metadata: { ...known.metadata, resourceVersion: String(this.#version) },
      });
    }
  }

  #tell(path: string, type: string, object: FakeObject): void {
    const line = `${JSON.stringify({ type, object })}\n`;
    this.#history.push({ version: this.#version, path, line });
    for (const watch of this.#watches) {
      if (path.startsWith(`${watch.path}/`)) {
        watch.response.write(line);
      }
    }
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://fake');
    const { method = 'GET' } = request;
    const name = `${method} ${url.pathname}${url.searchParams.has('watch') ? '?watch' : ''}`;
    this.requests.push(name);
    const text = await textOf(request);
    if (request.headers.authorization !== `Bearer ${this.token}`) {
      send(response, 401, { kind: 'Status', message: 'Unauthorized', reason: 'Unauthorized' });
      return;
    }
    const entry = this.#faults.find(({ match, left }) => left > 0 && match(name));
    if (entry) {
      entry.left -= 1;
      if (entry.fault.kind === 'lose-response') {
        this.#handle(method, url, text);
      }
      if (entry.fault.kind === 'status') {
        const { status, reason, message = `fault ${status}`, headers } = entry.fault;
        send(response, status, { kind: 'Status', message, reason }, headers);
      } else if (entry.fault.kind === 'empty') {
        response.writeHead(200).end();
      } else {
        request.socket.resetAndDestroy();
      }
      return;
    }
    if (url.searchParams.has('watch')) {
      const watch = { path: url.pathname, response };
      this.#watches.add(watch);
      response.once('close', () => this.#watches.delete(watch));
      response.writeHead(200, { 'content-type': 'application/json' });
      response.flushHeaders();
      // A watch begins behind the list that it follows, also where something has changed since then.
      const since = Number(url.searchParams.get('resourceVersion'));
      for (const { version, path, line } of this.#history) {
        if (version > since && path.startsWith(`${watch.path}/`)) {
          response.write(line);
        }
      }
      return;
    }
    const { status, body } = this.#handle(method, url, text);
    send(response, status, body);
  }

  #handle(method: string, { pathname, searchParams }: URL, text: string): { status: number; body: unknown } {
    const object = this.objects.get(pathname);
    if (pathname.endsWith('/selfsubjectaccessreviews')) {
      const asked = asRecord(jsonAt(JSON.parse(text), 'spec', 'resourceAttributes'));
      const resource = [asked['resource'], asked['subresource']].filter(Boolean).join('/');
      const status = { allowed: !this.lacking.has(`${String(asked['verb'])} ${resource}`) };
      return { status: 201, body: { kind: 'SelfSubjectAccessReview', status } };
    }
    if (method === 'POST') {
      return this.#create(pathname, JSON.parse(text));
    }
    if (method === 'GET' && /\/(sandboxes|pods|events|networkpolicies)$/.test(pathname)) {
      return this.#list(pathname, searchParams);
    }
    if (object === undefined) {
      return { status: 404, body: { kind: 'Status', message: `${pathname} not found`, reason: 'NotFound' } };
    }
    if (method === 'PATCH') {
      return { status: 200, body: this.#patch(pathname, object, JSON.parse(text)) };
    }
    if (method === 'DELETE') {
      this.remove(pathname);
      this.remove(podPath(pathname));
    }
    return { status: 200, body: object };
  }

  #list(pathname: string, query: URLSearchParams): { status: number; body: unknown } {
    const [labels, fields] = ['labelSelector', 'fieldSelector'].map((name) => selectorOf(query.get(name)));
    const matching = [...this.objects]
      .filter(([path]) => path.startsWith(`${pathname}/`))
      .map(([, each]) => each)
      .filter(
        (each) =>
          labels?.every(([label, value]) => jsonText(jsonAt(each, 'metadata', 'labels'), label) === value) &&
          fields?.every(([field, value]) => jsonText(each, ...field.split('.')) === value),
      );
    const from = Number(query.get('continue') ?? 0);
    const until = from + Number(query.get('limit') ?? Infinity);
    const more = until < matching.length && { continue: String(until) };
    const metadata = { resourceVersion: String(this.#version), ...more };
    return { status: 200, body: { metadata, items: matching.slice(from, until) } };
  }

  #create(pathname: string, object: FakeObject): { status: number; body: unknown } {
    const path = `${pathname}/${jsonText(object, 'metadata', 'name')}`;
    if (this.objects.has(path)) {
      return { status: 409, body: { kind: 'Status', message: 'it exists', reason: 'AlreadyExists' } };
    }
    const stored = this.put(path, object);
    this.#control(path);
    return { status: 201, body: stored };
  }

  #patch(pathname: string, object: FakeObject, change: Record<string, unknown> | unknown[]): FakeObject {
    if (Array.isArray(change)) {
      // Only what a resume sends: the pod's template as a whole.
      const spec = { ...asRecord(object['spec']), podTemplate: jsonAt(change[0], 'value') };
      return this.put(pathname, { ...object, spec });
    }
    const merged = this.put(pathname, {
      ...object,
      ...asRecord(merge(object, change)),
      metadata: asRecord(merge(object.metadata, change['metadata'] ?? {})),
    });
    if (jsonAt(change, 'spec') !== undefined) {
      this.#control(pathname);
    }
    return merged;
  }

  /** What the controller and the kubelet do in a real cluster. */
  #control(path: string): void {
    const sandbox = this.objects.get(path);
    if (sandbox === undefined || !path.includes('/sandboxes/')) {
      return;
    }
    const pod = podPath(path);
    if (jsonText(sandbox, 'spec', 'operatingMode') === 'Suspended') {
      this.remove(pod);
      const conditions = [{ type: 'Suspended', status: 'True', observedGeneration: 1 }];
      this.put(path, { ...sandbox, status: { conditions } });
      return;
    }
    const template = asRecord(jsonAt(sandbox, 'spec', 'podTemplate', 'metadata'));
    const ownerReferences = [{ kind: 'Sandbox', uid: jsonText(sandbox, 'metadata', 'uid') }];
    this.put(pod, {
      metadata: { ...template, name: jsonText(sandbox, 'metadata', 'name'), ownerReferences },
      status: this.nextPodStatuses.shift() ?? this.podStatus,
    });
  }
}

function selectorOf(text: string | null): [string, string][] {
  return (text ?? '')
    .split(',')
    .filter(Boolean)
    .map((each) => {
      const [name = '', value = ''] = each.split('=', 2);
      return [name, value];
    });
}

function podPath(sandboxPath: string): string {
  return sandboxPath.replace('/apis/agents.x-k8s.io/v1beta1/', '/api/v1/').replace('/sandboxes/', '/pods/');
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}

/** RFC 7396. */
function merge(target: unknown, change: unknown): unknown {
  if (typeof change !== 'object' || change === null || Array.isArray(change)) {
    return change;
  }
  const merged = asRecord(Array.isArray(target) ? {} : target);
  for (const [name, value] of Object.entries(change)) {
    if (value === null) {
      delete merged[name];
    } else {
      merged[name] = merge(merged[name], value);
    }
  }
  return merged;
}

function send(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}
