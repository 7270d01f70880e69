import { afterAll, beforeAll, beforeEach } from '@jest/globals';
import { FakeOidcIssuer } from '../fakes/fake-oidc-issuer.js';
import type { TestApp } from './create-test-app.js';
import { SignInBrowser } from './sign-in-browser.js';
import { useTestApp } from './use-test-app.js';

/** An issuer, which has another person in each test. */
export interface SingleSignOn {
  issuer: FakeOidcIssuer;
  /** In the subject, the address and the sign-in of the person. */
  people: number;
  browser: () => SignInBrowser;
}

/** An issuer and the application that knows it, as `useTestApp` has the application alone. */
export function useIssuer(environment: Record<string, string> = {}): { app: TestApp; sso: SingleSignOn } {
  const sso = { people: 0, browser: () => new SignInBrowser(app.url) } as SingleSignOn;
  beforeAll(async () => {
    sso.issuer = await FakeOidcIssuer.start();
  });
  const app = useTestApp(() => ({ ...sso.issuer.environment, ...environment }));
  beforeEach(() => {
    sso.people += 1;
    sso.issuer.server.clearFaults();
    const { people } = sso;
    Object.assign(sso.issuer.state, {
      person: { sub: `sub-${people}`, email: `p${people}@example.com`, name: 'Ada', groups: ['dev'] },
      userInfo: {},
      sid: `sid-${people}`,
      refreshTokens: null,
      renewed: null,
      tamper: null,
    });
  });
  afterAll(() => sso.issuer.server.close());
  return { app, sso };
}
