import { Body, Controller, Get, HttpStatus, Post, Query, Redirect, Req, Res } from '@nestjs/common';
import { ApiConsumes, ApiExcludeEndpoint, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { DomainError } from '../../common/errors/domain-error.js';
import { statusOf } from '@slipway/api/errors/problem.js';
import { ApiRoute, documented, thrown } from '@slipway/api/openapi/api-route.js';
import { Shown } from '@slipway/api/openapi/responses.js';
import { JsonBodyBounds } from '@slipway/api/requests/json-body.interceptor.js';
import { insufficientScope } from '../../common/scopes.js';
import { Text } from '@slipway/api/validation/field-decorators.js';
import { NoOtherMembers } from '@slipway/api/validation/unknown-members.js';
import { ServiceAddress } from '../../config/service-address.js';
import { ApiKeyVerifier } from '../api-key.verifier.js';
import { Public } from '../auth.decorators.js';
import { serviceSignsIn } from '../user.repository.js';
import { FOREIGN_PAGE, RequestAuthenticator } from '../request-authenticator.js';
import { PersonsService } from './persons.service.js';
import { PAGE_POLICY, refusedPage, signedInPage } from './sign-in.page.js';
import { SignInService } from './sign-in.service.js';

class BeginSignInQueryDto {
  @Text('Path of the console to go on at.', { example: '/console/conversations', maxLength: 2_000 })
  return_to?: string;
}

@NoOtherMembers()
class LinkSignInDto {
  @Text('An API key of the user who is to sign in by the issuer from now on.', {
    required: true,
    example: 'slw_4nKxq0Zt_kD2w8q5X0bYtR7mNc1ZpLs9VhGjEaUiOfQ3xTy6WrAe',
    maxLength: 512,
    secret: true,
  })
  key: string;
}

class SignInAddressDto {
  @Shown('Where the browser goes on.', 'https://sso.example.com/authorize?client_id=slipway') url: string;
}

class LogoutTokenDto {
  @Text('As OpenID Connect Back-Channel Logout 1.0 says.', {
    required: true,
    example: 'eyJhbGciOiJSUzI1NiJ9.e30.c2lnbmF0dXJl',
    maxLength: 16_384,
    secret: true,
  })
  logout_token: string;
}

const NO_ISSUER = documented(
  404,
  'People do not sign in by the issuer: set OIDC_CLIENT_ID.',
  'No issuer is configured',
);
const AWAY = documented(
  503,
  'The identity provider cannot be reached; try again in a moment.',
  'The issuer is away',
);
const WRONG_KEY = 'This is not a valid API key: it may be misspelt, revoked or expired.';

const refusedLogout = (): DomainError =>
  new DomainError('invalid_request', 'This is no logout token of the issuer for this service.', {
    extensions: { error: 'invalid_request' },
  });

/** Sign-in of people by the company's issuer (OpenID Connect Core 1.0, authorization code). */
@ApiTags('Sessions')
@Public()
@Controller('auth')
export class SignInController {
  constructor(
    private readonly signIns: SignInService,
    private readonly authenticator: RequestAuthenticator,
    private readonly keys: ApiKeyVerifier,
    private readonly persons: PersonsService,
    private readonly address: ServiceAddress,
  ) {}

  @Get('login')
  @ApiRoute('begin_sign_in', 'Sign in by the identity provider', {
    description: 'For browsers: leads to the issuer, which leads back to `/auth/callback`.',
    status: HttpStatus.FOUND,
    answer: { description: 'To the issuer' },
    problems: [NO_ISSUER, AWAY],
  })
  @Redirect()
  async begin(
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
    @Query() { return_to: returnTo }: BeginSignInQueryDto,
  ): Promise<{ url: string }> {
    response.setHeader('Cache-Control', 'no-store');
    return { url: await this.signIns.begin(request, response, { returnTo }) };
  }

  /** Answers with pages, since only browsers come here. */
  @Get('callback')
  @ApiExcludeEndpoint()
  async finish(@Req() request: Request, @Res() response: Response): Promise<void> {
    response
      .setHeader('Cache-Control', 'no-store')
      .setHeader('Content-Security-Policy', PAGE_POLICY)
      .type('html');
    try {
      const path = await this.signIns.finish(request, response);
      response.send(signedInPage(path));
    } catch (error) {
      if (!(error instanceof DomainError)) {
        throw error;
      }
      const again = `${this.address.pathPrefix}/auth/login`;
      response.status(statusOf(error)).send(refusedPage(error.message, again));
    }
  }

  @Post('link')
  @JsonBodyBounds({ bytes: 1_024 })
  @ApiRoute('link_sign_in', 'Link a user with the identity provider', {
    description:
      'Begins a sign-in that ends in the link: who signs in there is the user of the key from then on. The key must be one that may do all that its user may.',
    answer: { type: SignInAddressDto, description: 'Where the browser goes on' },
    problems: [
      { status: 401, detail: WRONG_KEY, description: 'Unknown, revoked or expired' },
      documented(403, FOREIGN_PAGE, 'A page of another origin asks'),
      thrown(serviceSignsIn(), 'A key of a service'),
      thrown(insufficientScope('admin'), 'The key may do less than its user'),
      NO_ISSUER,
      AWAY,
    ],
  })
  async link(
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
    @Body() { key }: LinkSignInDto,
  ): Promise<SignInAddressDto> {
    this.authenticator.requireOwnOrigin(request);
    const user = await this.keys.verify(key.trim());
    if (!user) {
      throw new DomainError('unauthorized', WRONG_KEY);
    }
    await this.persons.requireLinkable(user);
    const returnTo = `${this.address.pathPrefix}/console/settings`;
    return { url: await this.signIns.begin(request, response, { returnTo, linkTo: user }) };
  }

  @Post('backchannel-logout')
  @JsonBodyBounds({ bytes: 20_480, form: true })
  @ApiConsumes('application/x-www-form-urlencoded', 'application/json')
  @ApiRoute('backchannel_logout', 'End sessions for the identity provider', {
    description:
      'OpenID Connect Back-Channel Logout 1.0: the sessions of that sign-in or subject end, with the keys that were made by them.',
    answer: { description: 'Ended, or there were none' },
    problems: [thrown(refusedLogout(), 'No logout token of the issuer'), NO_ISSUER, AWAY],
  })
  async logOut(
    @Res({ passthrough: true }) response: Response,
    @Body() { logout_token: token }: LogoutTokenDto,
  ): Promise<void> {
    response.setHeader('Cache-Control', 'no-store');
    try {
      await this.signIns.logOut(token);
    } catch (error) {
      throw error instanceof DomainError && error.code === 'unauthorized' ? refusedLogout() : error;
    }
  }
}
