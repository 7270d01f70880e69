import request from 'supertest';

/** Headers of a session that is begun with a key. */
export async function sessionOf(
  url: string,
  key: string,
): Promise<{ Cookie: string; 'X-CSRF-Token': string }> {
  const { body, headers } = await request(url).post('/auth/key').send({ key }).expect(200);
  const [cookie = ''] = [headers['set-cookie'] ?? []].flat();
  return { Cookie: cookie.replace(/;.*/, ''), 'X-CSRF-Token': body.csrf_token };
}

/** A browser that signs in: keeps cookies, and goes to the issuer and back. */
export class SignInBrowser {
  readonly cookies = new Map<string, string>();

  constructor(private readonly url: string) {}

  get cookie(): string {
    return [...this.cookies].map((pair) => pair.join('=')).join('; ');
  }

  async get(path: string): Promise<request.Response> {
    return this.keep(await request(this.url).get(path).set('Cookie', this.cookie).redirects(0));
  }

  /** @returns the answer of the callback */
  async signIn(path?: string): Promise<request.Response> {
    return this.get(await this.begin(path));
  }

  /** As far as the issuer. @returns path and query of the callback, which is not asked for */
  async begin(path = '/auth/login'): Promise<string> {
    const { headers } = await this.get(path);
    return this.atIssuer(headers['location'] ?? '');
  }

  /** By a key, as from a page of the origin. */
  async signInWith(key: string, origin = this.url): Promise<request.Response> {
    return this.keep(
      await request(this.url).post('/auth/key').set({ Cookie: this.cookie, Origin: origin }).send({ key }),
    );
  }

  /** Stops at the address of the issuer. */
  async beginLink(key: string, origin = this.url): Promise<request.Response> {
    return this.keep(await request(this.url).post('/auth/link').set('Origin', origin).send({ key }));
  }

  async goOn(addressAtIssuer: string): Promise<request.Response> {
    return this.get(await this.atIssuer(addressAtIssuer));
  }

  async user(): Promise<{ id: string; email: string; is_admin: boolean; scopes: string[] } | null> {
    return (await this.get('/auth/session')).body.user;
  }

  /** Headers for changes by the session. */
  async headers(): Promise<Record<string, string>> {
    const { body } = await this.get('/auth/session');
    return { Cookie: this.cookie, 'X-CSRF-Token': body.csrf_token };
  }

  private async atIssuer(address: string): Promise<string> {
    const { headers } = await fetch(address, { redirect: 'manual' });
    const { pathname, search } = new URL(headers.get('location') ?? '');
    return pathname + search;
  }

  private keep(answer: request.Response): request.Response {
    for (const line of [answer.headers['set-cookie'] ?? []].flat()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '') {
        this.cookies.delete(name);
      } else {
        this.cookies.set(name, value);
      }
    }
    return answer;
  }
}
