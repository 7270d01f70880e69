import request from 'supertest';
import {
  CREDENTIAL_HEADER,
  EGRESS_PATHS,
  type EgressPolicy,
  policySchema,
} from '@slipway/egress-proxy/protocol.js';
import type { WarmLaunch } from '@slipway/sandboxes/sandbox-backend.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { PROXY_KEY } from '../../src/v1/egress/egress-proxy.keys.js';
import type { TestApp } from './create-test-app.js';

/** What proxies are told of a sandbox. */
export async function egressPolicy(
  app: TestApp,
  backend: { readonly boxes: ReadonlyMap<string, { launch: WarmLaunch }> },
  sandboxId: string,
): Promise<EgressPolicy> {
  const { body } = await request(app.url)
    .get(EGRESS_PATHS.policy)
    .set({
      authorization: `Bearer ${app.app.get(SecretCipher, { strict: false }).derive(PROXY_KEY)}`,
      [CREDENTIAL_HEADER]: backend.boxes.get(sandboxId)?.launch.egress?.credential ?? '',
    })
    .expect(200);
  return policySchema.parse(body);
}
