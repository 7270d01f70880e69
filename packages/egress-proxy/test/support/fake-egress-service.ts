import { createServer, type Server } from 'node:http';
import { json } from 'node:stream/consumers';
import { startListening, stopServer } from '../../../../test/support/start-listening.js';
import {
  CREDENTIAL_HEADER,
  EGRESS_PATHS,
  type EgressPolicy,
  onceSchema,
  policySchema,
  type ReportedCall,
  type ReportedRequest,
  reportsSchema,
} from '../../src/protocol.js';

export const KEY = 'key-of-the-proxy';

/** The service's side of the protocol, with what a test says. */
export class FakeEgressService {
  /** By credential. */
  readonly policies = new Map<string, EgressPolicy>();
  readonly reported: (ReportedRequest & { sandbox: string })[] = [];
  readonly calls: (ReportedCall & { sandbox: string })[] = [];
  /** What the owner allowed once, as `SANDBOX HOST`. */
  readonly allowedOnce = new Set<string>();
  /** Answers every question with this, in place of the truth. */
  failure: number | null = null;
  asked = 0;
  /** Credentials whose questions are answered when this ends. */
  readonly held = new Map<string, Promise<void>>();
  /** Questions that the proxy gave up. */
  abandoned = 0;
  private readonly server: Server;

  private constructor() {
    this.server = createServer(async (request, response) => {
      const body: unknown = request.method === 'POST' ? await json(request) : null;
      response.once('close', () => {
        this.abandoned += response.writableFinished ? 0 : 1;
      });
      await this.held.get(String(request.headers[CREDENTIAL_HEADER]));
      const { status, answer } = this.answer(request.url ?? '', request.headers, body);
      response
        .writeHead(status, { 'Content-Type': 'application/json' })
        .end(answer && JSON.stringify(answer));
    });
  }

  static async start(): Promise<FakeEgressService & { address: URL }> {
    const service = new FakeEgressService();
    const port = await startListening(service.server);
    return Object.assign(service, { address: new URL(`http://127.0.0.1:${port}`) });
  }

  async stop(): Promise<void> {
    await stopServer(this.server);
  }

  private answer(
    url: string,
    headers: NodeJS.Dict<string | string[]>,
    body: unknown,
  ): { status: number; answer?: unknown } {
    if (this.failure !== null) {
      return { status: this.failure };
    }
    if (headers['authorization'] !== `Bearer ${KEY}`) {
      return { status: 401 };
    }
    switch (url) {
      case EGRESS_PATHS.policy: {
        this.asked += 1;
        const policy = this.policies.get(String(headers[CREDENTIAL_HEADER]));
        return policy === undefined ? { status: 404 } : { status: 200, answer: policySchema.parse(policy) };
      }
      case EGRESS_PATHS.once: {
        const { sandbox, host } = onceSchema.parse(body);
        return { status: 200, answer: { allowed: this.allowedOnce.delete(`${sandbox} ${host}`) } };
      }
      case EGRESS_PATHS.reports: {
        const { reports } = reportsSchema.parse(body);
        this.reported.push(
          ...reports.flatMap(({ sandbox, requests }) => requests.map((each) => ({ sandbox, ...each }))),
        );
        this.calls.push(
          ...reports.flatMap(({ sandbox, calls }) => calls.map((each) => ({ sandbox, ...each }))),
        );
        return { status: 204 };
      }
      default:
        return { status: 404 };
    }
  }
}
