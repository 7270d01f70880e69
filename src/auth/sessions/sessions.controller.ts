import { ApiProperty, PickType, ApiTags } from '@nestjs/swagger';
import { Body, Controller, Get, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { ShownOrNull } from '@slipway/api/openapi/responses.js';
import { Text } from '@slipway/api/validation/field-decorators.js';
import { UserDto } from '../users.dto.js';
import { KeyRepositoriesShown, ScopesShown } from '../api-keys.dto.js';
import { type BrowserSession, BrowserSessions } from './browser-sessions.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { ApiRoute, documented, thrown } from '@slipway/api/openapi/api-route.js';
import { JsonBodyBounds } from '@slipway/api/requests/json-body.interceptor.js';
import { NoOtherMembers } from '@slipway/api/validation/unknown-members.js';
import { ApiKeyVerifier } from '../api-key.verifier.js';
import type { Scope } from '../../common/scopes.js';
import { serviceSignsIn } from '../user.repository.js';
import { Public } from '../auth.decorators.js';
import { ServiceAddress } from '../../config/service-address.js';
import { OidcIssuer } from '../oidc/oidc.issuer.js';
import { OneTimeCodes, UNUSABLE_CODE } from '../one-time-codes.js';
import { FOREIGN_PAGE, NO_CSRF_TOKEN, RequestAuthenticator } from '../request-authenticator.js';

const EXAMPLE_KEY = 'slw_4nKxq0Zt_kD2w8q5X0bYtR7mNc1ZpLs9VhGjEaUiOfQ3xTy6WrAe';
const EXAMPLE_CODE = 'jTq0mJ0cV4mXQm2y8b1u3bZ6r9d5fQw7eTn2sLxK4aU';
const NO_CODE = 'Expected the 43 letters, digits, - and _ of a code.';

@NoOtherMembers()
export class SignInWithKeyDto {
  @Text('An API key.', { required: true, example: EXAMPLE_KEY, maxLength: 512, secret: true }) key: string;
}

@NoOtherMembers()
export class ExchangeCodeDto {
  @Text('From the link that the service printed when it was started.', {
    required: true,
    example: EXAMPLE_CODE,
    maxLength: 43,
    pattern: { regex: /^[\w-]{43}$/, expected: NO_CODE },
  })
  code: string;
}

class SessionUserDto extends PickType(UserDto, ['id', 'email', 'name', 'is_admin']) {
  @ScopesShown('What the session may do.') scopes: Scope[];

  @KeyRepositoriesShown() repositories: string[] | null;
}

export class SessionDto {
  @ApiProperty({ type: SessionUserDto, nullable: true, description: 'Null: nobody is signed in.' })
  user: SessionUserDto | null;

  @ShownOrNull(
    'For the header `X-CSRF-Token` of changes by this session; null without one.',
    'b0Zk3m3R9c1w8Xq5hT2yV7uJ4aN6sLdPfGtEoIiQrYk',
  )
  csrf_token: string | null;

  @ShownOrNull(
    'Where a browser signs in by the identity provider; null where none is configured.',
    '/auth/login',
  )
  sign_in_url: string | null;
}

function toSessionDto(session: BrowserSession | null, signInUrl: string | null): SessionDto {
  if (session === null) {
    return { user: null, csrf_token: null, sign_in_url: signInUrl };
  }
  const { id, email, name, isAdmin, scopes, repositories } = session.user;
  const limits = { scopes: [...scopes], repositories: repositories && [...repositories] };
  const user = { id, email, name, is_admin: isAdmin, ...limits };
  return { user, csrf_token: session.csrfToken, sign_in_url: signInUrl };
}

const WRONG_KEY =
  'This is not a valid API key: it may be misspelt, revoked or expired. The first start writes one to .data/api-key.';
const FOREIGN = documented(403, FOREIGN_PAGE, 'A page of another origin asks');
const SIGNED_IN = {
  type: SessionDto,
  description:
    'Signed in: the cookie `slipway_session` (by https `__Host-slipway_session`) is set, and an earlier session of the browser ended',
};

/** Serves our own console: the browser gets a cookie that no script can read, and never holds a key. */
@ApiTags('Sessions')
@Public()
@Controller('auth')
export class SessionsController {
  constructor(
    private readonly sessions: BrowserSessions,
    private readonly authenticator: RequestAuthenticator,
    private readonly keys: ApiKeyVerifier,
    private readonly codes: OneTimeCodes,
    private readonly issuer: OidcIssuer,
    private readonly address: ServiceAddress,
  ) {}

  @Get('session')
  @ApiRoute('get_session', 'Show who is signed in', {
    description: 'Open to everyone, so that a page can ask before it knows.',
    answer: { type: SessionDto, description: 'The user, or null' },
  })
  async show(@Req() request: Request): Promise<SessionDto> {
    return this.shown(await this.sessions.find(request));
  }

  @Post('key')
  @JsonBodyBounds({ bytes: 1_024 })
  @ApiRoute('sign_in_with_key', 'Sign in with an API key', {
    description: 'Twelve hours without use end the session, and so do seven days and the end of the key.',
    answer: SIGNED_IN,
    problems: [
      { status: 401, detail: WRONG_KEY, description: 'Unknown, revoked or expired' },
      FOREIGN,
      thrown(serviceSignsIn()),
    ],
  })
  async signInWithKey(
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
    @Body() { key }: SignInWithKeyDto,
  ): Promise<SessionDto> {
    this.authenticator.requireOwnOrigin(request);
    const user = await this.keys.verify(key.trim());
    if (!user) {
      throw new DomainError('unauthorized', WRONG_KEY);
    }
    return this.shown(await this.sessions.begin(request, response, user));
  }

  @Post('code')
  @JsonBodyBounds({ bytes: 1_024 })
  @ApiRoute('sign_in_with_code', 'Sign in with the code of a link', {
    description: 'The link that a start prints on a terminal has such a code. It is valid once.',
    answer: SIGNED_IN,
    problems: [{ status: 401, detail: UNUSABLE_CODE, description: 'Unknown, used or expired' }, FOREIGN],
  })
  async signInWithCode(
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
    @Body() { code }: ExchangeCodeDto,
  ): Promise<SessionDto> {
    this.authenticator.requireOwnOrigin(request);
    const { user } = await this.codes.exchange(code, 'session');
    return this.shown(await this.sessions.begin(request, response, user));
  }

  @Post('logout')
  @ApiRoute('sign_out', 'Sign out', {
    description: 'Ends the session of the browser; without one nothing happens.',
    status: 204,
    answer: { description: 'Signed out' },
    problems: [{ status: 403, detail: NO_CSRF_TOKEN, description: 'The token of the session is missing' }],
  })
  async signOut(@Req() request: Request, @Res({ passthrough: true }) response: Response): Promise<void> {
    this.authenticator.requireOwnOrigin(request);
    await this.sessions.end(request, response);
  }

  private shown(session: BrowserSession | null): SessionDto {
    return toSessionDto(session, this.issuer.signsIn ? `${this.address.pathPrefix}/auth/login` : null);
  }
}
