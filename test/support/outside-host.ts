import { request, type IncomingMessage, type ServerResponse } from 'node:http';
import path from 'node:path';
import { egressVariables } from '@slipway/sandboxes/launch-variables.js';
import { MODEL_HEADERS, MODEL_MEMBERS } from '@slipway/egress-rules/credential-places.js';
import { newPlaceholder } from '@slipway/egress-rules/placeholder.js';
import { CREDENTIAL, injection, SANDBOX } from '../../packages/egress-proxy/test/support/sample-policy.js';
import { ProxyWorld } from '../../packages/egress-proxy/test/support/proxy-world.js';
import { writeAuthorities } from '../../packages/agent-server/src/program.js';
import { toolEnvironment } from '../../packages/agent-server/src/tool-view.js';

/** A host whose key a program does not have: it speaks TLS, and a real proxy puts the key in. */
export class OutsideHost {
  private constructor(
    private readonly world: ProxyWorld,
    /** Of the host, for the program. */
    readonly url: string,
    /** What the program has of the key. */
    readonly placeholder: string,
    /** Variables of the sandbox. */
    readonly environment: Record<string, string>,
    private readonly key: string,
  ) {}

  /**
   * @param server where the host is, without TLS and without the proxy; a path is kept
   * @param home a folder for the authorities that the program trusts
   */
  static async start(server: string, key: string, home: string): Promise<OutsideHost> {
    const world = await ProxyWorld.start();
    const { port } = await world.startTlsHost();
    const { origin, pathname } = new URL(server);
    world.answer = (incoming, response) => passOn(world, origin, incoming, response);
    const placeholder = newPlaceholder(key);
    const hosts = [{ host: 'host.example', port }];
    const places = { hosts, headers: MODEL_HEADERS, query: MODEL_MEMBERS };
    world.allow({ injections: [injection({ placeholder, value: key, ...places })] });
    const program = { kind: 'native' as const, image: null };
    const access = {
      port: world.port,
      credential: CREDENTIAL,
      authority: world.authority.certificate,
      isOnlyWay: false,
    };
    const variables: NodeJS.ProcessEnv = {
      PATH: `${path.dirname(process.execPath)}:${process.env['PATH'] ?? ''}`,
      HOME: home,
      ...egressVariables({ id: SANDBOX, program }, access, '127.0.0.1'),
      NODE_USE_ENV_PROXY: '1',
    };
    await writeAuthorities(variables);
    const url = `https://host.example:${port}${pathname.replace(/\/$/, '')}`;
    return new OutsideHost(world, url, placeholder, toolEnvironment(variables), key);
  }

  /** How many requests that came to the host had the key, and those that had it not. */
  get received(): { withKey: number; others: string[] } {
    const asked = this.world.received.filter(({ method }) => method !== 'HEAD');
    const has = (text: string) => (each: (typeof asked)[number]) =>
      each.rawHeaders.some((line) => line.includes(text)) || each.url.includes(text);
    const others = asked.filter((each) => !has(this.key)(each));
    return {
      withKey: asked.length - others.length,
      others: others.map(({ url, rawHeaders }) => `${url} ${rawHeaders.join(' ')}`),
    };
  }

  /** What the proxy has counted: calls and their tokens. */
  async counted(): Promise<{ calls: number; tokens: number }> {
    await this.world.reported();
    const { calls } = this.world.service;
    return { calls: calls.length, tokens: calls.reduce((sum, each) => sum + each.input + each.output, 0) };
  }

  async close(): Promise<void> {
    await this.world.stop();
  }
}

function passOn(
  world: ProxyWorld,
  origin: string,
  incoming: IncomingMessage,
  response: ServerResponse,
): void {
  const { method, headers, url } = incoming;
  const body = world.received.find((each) => each.headers === headers)?.body ?? '';
  const length = Buffer.byteLength(body);
  const onward = request(`${origin}${url}`, {
    method,
    headers: { ...headers, host: new URL(origin).host, 'content-length': length },
  });
  // One of them may give up before the other.
  response.once('close', () => onward.destroy());
  onward.once('error', () => response.destroy());
  onward.once('response', (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  onward.end(body);
}
