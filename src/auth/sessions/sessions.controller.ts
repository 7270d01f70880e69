import { Body, Controller, Get, Header, Post, Req, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { DomainError } from '../../common/errors/domain-error.js';
import { ApiRoute, type DocumentedProblem } from '../../common/openapi/api-route.js';
import { JsonBodyBounds } from '../../common/requests/json-body.interceptor.js';
import { ServiceAddress } from '../../config/service-address.js';
import { ApiKeyVerifier } from '../api-key.verifier.js';
import { type AuthUser, Public } from '../auth.decorators.js';
import { OneTimeCodes, UNUSABLE_CODE } from '../one-time-codes.js';
import { FOREIGN_PAGE, NO_CSRF_TOKEN, RequestAuthenticator } from '../request-authenticator.js';
import { isCsrfToken, presentedSession, sessionSetCookie } from './session-cookie.js';
import { EXAMPLE_CODE, ExchangeCodeDto, SessionDto, SignInWithKeyDto, toSessionDto } from './sessions.dto.js';
import { SessionsService } from './sessions.service.js';

const WRONG_KEY =
  'This is not a valid API key: it may be misspelt, revoked or expired. The first start writes one to .data/api-key.';
const FOREIGN: DocumentedProblem = {
  status: 403,
  detail: FOREIGN_PAGE,
  description: 'A page of another origin asks',
};
const SIGNED_IN = {
  type: SessionDto,
  description: 'Signed in: the cookie `slipway_session` is set, and an earlier session of the browser ended',
};

/** For our own console: browsers get a cookie that no script can read, and never hold a key. */
@ApiTags('Sessions')
@Public()
@Controller('auth')
export class SessionsController {
  constructor(
    private readonly sessions: SessionsService,
    private readonly authenticator: RequestAuthenticator,
    private readonly keys: ApiKeyVerifier,
    private readonly codes: OneTimeCodes,
    private readonly address: ServiceAddress,
  ) {}

  @Get('session')
  @Header('Cache-Control', 'no-store')
  @ApiRoute({
    id: 'get_session',
    summary: 'Show who is signed in',
    description: 'Open to everyone, so that a page can ask before it knows.',
    answer: { type: SessionDto, description: 'The user, or null' },
  })
  async show(@Req() request: Request): Promise<SessionDto> {
    const session = presentedSession(request.headers);
    const user = session === null ? null : await this.sessions.verify(session);
    return session !== null && user !== null
      ? toSessionDto(user, session.csrfToken)
      : { user: null, csrf_token: null };
  }

  @Post('key')
  @JsonBodyBounds({ bytes: 1_024 })
  @Header('Cache-Control', 'no-store')
  @ApiRoute({
    id: 'sign_in_with_key',
    summary: 'Sign in with an API key',
    description: 'Twelve hours without use end the session, and so do seven days and the end of the key.',
    answer: SIGNED_IN,
    problems: [{ status: 401, detail: WRONG_KEY, description: 'Unknown, revoked or expired' }, FOREIGN],
  })
  async signInWithKey(
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
    @Body() { key }: SignInWithKeyDto,
  ): Promise<SessionDto> {
    this.authenticator.requireOwnOrigin(request);
    const user = await this.keys.verify(key.trim());
    if (!user) {
      throw new DomainError('unauthorized', 'unauthorized', WRONG_KEY);
    }
    return this.signIn(request, response, user);
  }

  @Post('code')
  @JsonBodyBounds({ bytes: 1_024 })
  @Header('Cache-Control', 'no-store')
  @ApiRoute({
    id: 'sign_in_with_code',
    summary: 'Sign in with the code of a link',
    description: 'The link that a start prints on a terminal has such a code. It is valid once.',
    answer: SIGNED_IN,
    examples: { link: { summary: 'The code of a link', value: { code: EXAMPLE_CODE } } },
    problems: [{ status: 401, detail: UNUSABLE_CODE, description: 'Unknown, used or expired' }, FOREIGN],
  })
  async signInWithCode(
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
    @Body() { code }: ExchangeCodeDto,
  ): Promise<SessionDto> {
    this.authenticator.requireOwnOrigin(request);
    const { user } = await this.codes.exchange(code, 'session');
    return this.signIn(request, response, user);
  }

  @Post('logout')
  @ApiRoute({
    id: 'sign_out',
    summary: 'Sign out',
    description: 'Ends the session of the browser; without one nothing happens.',
    status: 204,
    answer: { description: 'Signed out' },
    problems: [{ status: 403, detail: NO_CSRF_TOKEN, description: 'The token of the session is missing' }],
  })
  async signOut(@Req() request: Request, @Res({ passthrough: true }) response: Response): Promise<void> {
    this.authenticator.requireOwnOrigin(request);
    const session = presentedSession(request.headers);
    if (session !== null && (await this.sessions.verify(session)) !== null) {
      if (!isCsrfToken(request.headers['x-csrf-token'], session)) {
        throw new DomainError('forbidden', 'forbidden', NO_CSRF_TOKEN);
      }
      await this.sessions.end(session);
    }
    response.setHeader('Set-Cookie', sessionSetCookie(null, this.isSecure(request)));
  }

  /** Never continues a session that the browser has brought along: others may know its secret. */
  private async signIn(request: Request, response: Response, user: AuthUser): Promise<SessionDto> {
    const opened = await this.sessions.open(user);
    const earlier = presentedSession(request.headers);
    if (earlier !== null) {
      await this.sessions.end(earlier);
    }
    response.setHeader('Set-Cookie', sessionSetCookie(opened.value, this.isSecure(request)));
    return toSessionDto(opened.user, opened.csrfToken);
  }

  private isSecure({ headers }: Request): boolean {
    return this.address.publicUrl.startsWith('https:') || headers['x-forwarded-proto'] === 'https';
  }
}
