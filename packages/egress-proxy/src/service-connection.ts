import { Agent, request } from 'undici';
import type { z } from 'zod';
import {
  CREDENTIAL_HEADER,
  EGRESS_PATHS,
  type EgressPolicy,
  type EgressReports,
  onceAnswerSchema,
  policySchema,
} from './protocol.js';

/** Something that it was told is not as the service wants it, and never will be. */
export class RefusedReportError extends Error {
  constructor(status: number) {
    super(`the service answered ${status}`);
  }
}

/** What a proxy asks and tells the service. */
export abstract class ServiceConnection {
  /** Null where no running sandbox has this credential. @throws Error where the service cannot say */
  abstract policy(credential: string): Promise<EgressPolicy | null>;
  /** Uses up what the owner allowed once; false where it is used up already. */
  abstract once(sandbox: string, host: string): Promise<boolean>;
  /** @throws RefusedReportError for what the service will never take; another Error where it may later */
  abstract report(reports: EgressReports): Promise<void>;
  abstract close(): Promise<void>;
}

const ANSWER_MS = 5_000;
/** 200 secrets with hosts, a user's and the organization's, are most of it. */
const MAX_POLICY_BYTES = 8 * 1024 * 1024;
const CONNECTIONS = 16;
const REFUSED = [400, 413, 422];

export class HttpServiceConnection extends ServiceConnection {
  private readonly dispatcher = new Agent({
    connections: CONNECTIONS,
    headersTimeout: ANSWER_MS,
    bodyTimeout: ANSWER_MS,
    connectTimeout: ANSWER_MS,
    maxResponseSize: MAX_POLICY_BYTES,
  });

  constructor(
    private readonly address: URL,
    private readonly key: string,
  ) {
    super();
  }

  async policy(credential: string): Promise<EgressPolicy | null> {
    const { status, answer } = await this.ask(EGRESS_PATHS.policy, {
      headers: { [CREDENTIAL_HEADER]: credential },
    });
    return status === 404 ? null : readAnswer(policySchema, answer);
  }

  async once(sandbox: string, host: string): Promise<boolean> {
    const { answer } = await this.ask(EGRESS_PATHS.once, { body: { sandbox, host } });
    return readAnswer(onceAnswerSchema, answer).allowed;
  }

  async report(reports: EgressReports): Promise<void> {
    await this.ask(EGRESS_PATHS.reports, { body: reports });
  }

  async close(): Promise<void> {
    await this.dispatcher.destroy();
  }

  private async ask(
    path: string,
    { headers = {}, body }: { headers?: Record<string, string>; body?: unknown },
  ): Promise<{ status: number; answer: unknown }> {
    const response = await request(new URL(path, this.address), {
      method: body === undefined ? 'GET' : 'POST',
      dispatcher: this.dispatcher,
      headers: {
        authorization: `Bearer ${this.key}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const status = response.statusCode;
    if (status === 200) {
      return { status, answer: await response.body.json() };
    }
    await response.body.dump();
    if (status === 204 || status === 404) {
      return { status, answer: null };
    }
    throw REFUSED.includes(status)
      ? new RefusedReportError(status)
      : new Error(`the service answered ${status}`);
  }
}

/** @throws Error in words that users are shown */
function readAnswer<T>(schema: z.ZodType<T>, answer: unknown): T {
  const { data } = schema.safeParse(answer);
  if (data === undefined) {
    throw new Error(
      'its answer cannot be read, so it is of another release: upgrade the egress proxy with the service',
    );
  }
  return data;
}
