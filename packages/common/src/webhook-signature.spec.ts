import { describe, expect, it } from '@jest/globals';
import { createWebhookSecret, signatureHeaders, webhookSecretBytes } from './webhook-signature.js';

describe('signatureHeaders', () => {
  it('signs as the example of Standard Webhooks does', () => {
    expect(
      signatureHeaders(['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'], {
        id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
        at: new Date(1_614_265_330_000),
        body: '{"test": 2432232314}',
      }),
    ).toEqual({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    });
  });

  it('refuses what is no secret', () => {
    expect(() => signatureHeaders(['secret'], { id: 'a', at: new Date(0), body: '' })).toThrow(
      'a signing secret has the wrong form',
    );
  });
});

describe('webhookSecretBytes', () => {
  it.each([
    ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 24],
    [`whsec_${Buffer.alloc(64).toString('base64')}`, 64],
    [`whsec_${Buffer.alloc(65).toString('base64')}`, null],
    [`whsec_${Buffer.alloc(23).toString('base64')}`, null],
    ['MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', null],
    ['whsec_', null],
    ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!', null],
  ])('%s: %s', (secret, bytes) => {
    expect(webhookSecretBytes(secret)?.length ?? null).toBe(bytes);
  });

  it('knows the secrets that are created, each another one', () => {
    const secrets = [createWebhookSecret(), createWebhookSecret()];
    expect(secrets.map((secret) => webhookSecretBytes(secret)?.length)).toEqual([32, 32]);
    expect(new Set(secrets).size).toBe(2);
  });
});
