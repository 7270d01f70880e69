import type { SandboxDto } from '../../src/v1/sandboxes/api/sandbox.dto.js';
import type { TestUser } from './create-test-app.js';
import { until } from './until.js';

/** An answer with its JSON. */
export interface Answer<T> {
  status: number;
  body: T;
  headers: Headers;
}

/** Requests about sandboxes as one user. */
export class SandboxesClient {
  constructor(
    private readonly url: string,
    readonly user: TestUser,
  ) {}

  async call<T = Record<string, unknown>>(
    method: string,
    path: string,
    { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<Answer<T>> {
    const response = await fetch(`${this.url}/api/v1/sandboxes${path}`, {
      method,
      headers: {
        ...this.user.headers,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as T, headers: response.headers };
  }

  async create(specId = 'slipway'): Promise<SandboxDto> {
    const { status, body } = await this.call<SandboxDto>('POST', `?sandbox_spec_id=${specId}`);
    if (status !== 200) {
      throw new Error(`${status} ${JSON.stringify(body)}`);
    }
    return body;
  }

  async get(id: string): Promise<SandboxDto | null> {
    const { body } = await this.call<(SandboxDto | null)[]>('GET', `?id=${id}`);
    return body[0] ?? null;
  }

  /** Waits until it has this status. */
  async reach(id: string, status: string): Promise<SandboxDto> {
    let found: SandboxDto | null = null;
    await until(async () => {
      found = await this.get(id);
      return (found?.status ?? 'MISSING') === status;
    });
    return found ?? ({ id } as SandboxDto);
  }

  async running(specId?: string): Promise<SandboxDto> {
    const { id } = await this.create(specId);
    return this.reach(id, 'RUNNING');
  }

  async pause(id: string): Promise<number> {
    return (await this.call('POST', `/${id}/pause`, { body: {} })).status;
  }

  async resume(id: string): Promise<number> {
    return (await this.call('POST', `/${id}/resume`)).status;
  }

  /** Pauses it and starts it again. */
  async restart(id: string): Promise<SandboxDto> {
    await this.pause(id);
    await this.reach(id, 'PAUSED');
    await this.resume(id);
    return this.reach(id, 'RUNNING');
  }

  async remove(id: string): Promise<number> {
    return (await this.call('DELETE', `/${id}?sandbox_id=${id}`)).status;
  }
}
