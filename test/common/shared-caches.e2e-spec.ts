import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import { createTestApp, type TestApp } from '../support/create-test-app.js';

/** What a cache between clients and the service may not hand to the next client without asking again. */
const ASKS_AGAIN = /\bno-(store|cache)\b/;

describe('a cache that all clients share', () => {
  let app: TestApp;

  beforeAll(async () => {
    app = await createTestApp();
  });

  afterAll(async () => {
    await app.close();
  });

  it('keeps no answer of the API for the next caller', async () => {
    const document = (await (await fetch(`${app.url}/openapi.json`)).json()) as OpenAPIObject;
    const kept: string[] = [];
    for (const [path, { get }] of Object.entries(document.paths)) {
      if (get !== undefined) {
        const address = app.url + path.replaceAll(/\{\w+\}/g, '00000000-0000-4000-8000-000000000000');
        const { status, headers, body } = await fetch(address, { headers: app.admin.headers });
        await body?.cancel();
        if (!ASKS_AGAIN.test(headers.get('cache-control') ?? '')) {
          kept.push(`${status} ${path}`);
        }
      }
    }

    expect(kept).toEqual([]);
  });
});
