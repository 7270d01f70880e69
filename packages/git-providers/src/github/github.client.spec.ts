import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import { GuardedHttpClient, type GuardedRequestInit } from '@slipway/common/http/guarded-http.client.js';
import { githubBaseUrl, githubTransport } from './github.client.js';

describe('githubBaseUrl', () => {
  it.each([
    [null, 'https://api.github.com', 'https://api.github.com'],
    [null, 'http://127.0.0.1:9101/', 'http://127.0.0.1:9101'],
    [null, 'https://git.example.com/api/v3/', 'https://git.example.com/api/v3'],
    ['git.example.com', 'https://api.github.com', 'https://git.example.com/api/v3'],
    ['git.example.com:8443', 'https://api.github.com', 'https://git.example.com:8443/api/v3'],
    ['http://127.0.0.1:9101', 'https://api.github.com', 'http://127.0.0.1:9101/api/v3'],
    ['octo.ghe.com', 'https://api.github.com', 'https://api.octo.ghe.com'],
    ['ghe.com', 'https://api.github.com', 'https://ghe.com/api/v3'],
    ['octo.ghe.com.example.com', 'https://api.github.com', 'https://octo.ghe.com.example.com/api/v3'],
  ])('host %s with the default %s', (host, apiUrl, expected) => {
    expect(githubBaseUrl(host, apiUrl)).toBe(expected);
  });
});

const NOW = 1_700_000_000_000;

/** Answers everything itself, and keeps what it was asked. */
class RecordingHttpClient extends GuardedHttpClient {
  readonly asked: GuardedRequestInit[] = [];
  answer = new Response('{}');

  override async fetch(_url: string | URL, init: GuardedRequestInit = {}): Promise<Response> {
    this.asked.push(init);
    return this.answer;
  }
}

describe('githubTransport', () => {
  let http: RecordingHttpClient;

  beforeEach(() => {
    http = new RecordingHttpClient({
      allowlist: HostAllowlist.parse([]),
      maxResponseBytes: 1_000,
      timeoutMs: 1_000,
    });
  });

  afterEach(async () => {
    await http.close();
  });

  async function send(): Promise<Response> {
    const call = { signal: new AbortController().signal, deadlineAt: NOW + 12_000 };
    const transport = githubTransport(http, call, 'ghp_secret', () => NOW);
    return await transport('https://api.github.com/graphql', { method: 'POST' });
  }

  it('lets the client wait for an answer as long as the call may take', async () => {
    await send();
    expect(http.asked).toEqual([expect.objectContaining({ method: 'POST', timeoutMs: 11_750 })]);
  });

  it.each([
    [401, { 'x-ratelimit-limit': '5000' }, '', 'unauthorized'],
    // The limit of an anonymous caller: the token has been lost on the way.
    [401, { 'x-ratelimit-limit': '60' }, '', 'unavailable'],
    [403, { 'x-github-sso': 'partial-results; organizations=1' }, '', 'insufficient_scope'],
    [404, {}, 'Not Found', 'unsupported'],
    [422, {}, 'Validation Failed', 'unsupported'],
  ])('translates %i %j %s to %s', async (status, headers, body, code) => {
    http.answer = new Response(body, { status, headers });
    await expect(send()).rejects.toMatchObject({ code });
  });
});
