import { describe, expect, it } from '@jest/globals';
import { CredentialsPlace } from './credentials-place.js';
import { parseConfig } from './load-config.js';

const place = (environment: Record<string, string>): CredentialsPlace =>
  new CredentialsPlace(parseConfig(environment, false));
const onRunc = (runtime: string | null): string | null => (runtime === null ? null : `not by ${runtime}`);

describe('CredentialsPlace', () => {
  it('has what is configured, whatever the backend finds', () => {
    for (const [where, isOutside] of [
      ['outside', true],
      ['inside', false],
    ] as const) {
      const configured = place({ SANDBOX_CREDENTIALS: where });
      configured.decide(() => (isOutside ? 'missing' : null));
      expect([configured.isOutside(), configured.isConfigured]).toEqual([isOutside, true]);
      expect(configured.line([null])).toMatchObject({ level: 'log' });
      expect(configured.shown).toBe(where);
    }
  });

  it('keeps credentials outside where nothing is configured and nothing is missing', () => {
    const found = place({});
    found.decide(() => null);
    expect([found.isOutside(), found.isConfigured, found.shown]).toEqual([
      true,
      false,
      'outside (by default)',
    ]);
    expect(found.line([null])).toEqual({
      level: 'log',
      text: expect.stringMatching(/^credentials stay outside/),
    });
  });

  it('has them inside before it is known, and where something is missing, which it names once', () => {
    const found = place({});
    expect(found.isOutside()).toBe(false);
    found.decide(() => 'install slirp4netns');
    expect(found.isOutside()).toBe(false);
    expect(found.line([null, 'crun'])).toEqual({
      level: 'warn',
      text: 'CREDENTIALS ARE IN SANDBOXES, where agents can read them: install slirp4netns. SANDBOX_CREDENTIALS=inside says that this is wanted',
    });
  });

  it('decides for each runtime', () => {
    const found = place({});
    found.decide(onRunc);
    expect([found.isOutside(null), found.isOutside('kata')]).toEqual([true, false]);
    expect(found.line([null, 'kata']).text).toMatch(/^CREDENTIALS ARE IN SOME SANDBOXES, .*: not by kata\./);
  });

  it.each(['HTTPS_PROXY', 'http_proxy', 'ALL_PROXY'])(
    'has them inside beyond %s, which the egress proxy does not use',
    (name) => {
      const found = place({ [name]: 'http://proxy.example:3128' });
      found.decide(() => null);
      expect(found.isOutside()).toBe(false);
      expect(found.line([null]).text).toContain(name.toUpperCase());
    },
  );
});
