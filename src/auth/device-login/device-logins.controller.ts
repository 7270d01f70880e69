import { Body, Controller, DefaultValuePipe, Get, Headers, Post, Query, Req } from '@nestjs/common';
import { ApiConsumes, ApiProperty, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { ApiRoute, documented, thrown } from '@slipway/api/openapi/api-route.js';
import { Shown, succeeded, SuccessDto, Time } from '@slipway/api/openapi/responses.js';
import { SchemaRules } from '@slipway/api/openapi/schema-rules.js';
import { JsonBodyBounds } from '@slipway/api/requests/json-body.interceptor.js';
import { Flag, Text } from '@slipway/api/validation/field-decorators.js';
import { InputValidationPipe } from '@slipway/api/validation/validation.pipe.js';
import { ServiceAddress } from '../../config/service-address.js';
import { type AuthUser, CurrentUser, Public } from '../auth.decorators.js';
import { NO_CSRF_TOKEN } from '../request-authenticator.js';
import { VALID_MS } from './device-login.repository.js';
import {
  deviceRefusal,
  DeviceLoginsService,
  GRANT_TYPE,
  INTERVAL_SECONDS,
  shownCode,
  tooManyCodes,
  tooManyLogins,
  unknownLogin,
} from './device-logins.service.js';

const BODY = { bytes: 2_048, form: true };
const BODY_TYPES = ['application/json', 'application/x-www-form-urlencoded'];
const DEVICE_CODE = 'cXq2V7mN0bT4yL9sKd3fGh6jPw1rZa8eUo5iXv2tQnB';
const USER_CODE = 'BCDF-GHJK';
const PAGE = 'https://slipway.example.com/oauth/device/verify';

class BeginDeviceLoginDto {
  @Text('What the device calls itself. Without it: as its `User-Agent` says.', { example: 'my-laptop' })
  client_id?: string;
}

class DeviceCodesDto {
  @Shown('For the device alone.', DEVICE_CODE) device_code: string;
  @Shown('For the person, who compares or types it.', USER_CODE) user_code: string;
  @ApiProperty({ example: PAGE }) verification_uri: string;
  @ApiProperty({ example: `${PAGE}?user_code=${USER_CODE}` }) verification_uri_complete: string;
  @Shown('Seconds.', VALID_MS / 1000) expires_in: number;
  @Shown('Seconds between two requests of the device.', INTERVAL_SECONDS) interval: number;
}

/** The document's rule alone: without the code the answer is that of RFC 6749, not a 422. */
@SchemaRules({ required: ['device_code'] })
class FetchDeviceKeyDto {
  @Text('Of the answer that began the login.', { example: DEVICE_CODE, secret: true }) device_code?: string;
  @Text('This one alone, which clients may leave out.', { example: GRANT_TYPE }) grant_type?: string;
}

class DeviceKeyDto {
  @Shown('An API key.', 'slw_4nKxq0Zt_kD2w8q5X0bYtR7mNc1ZpLs9VhGjEaUiOfQ3xTy6WrAe') access_token: string;
  @ApiProperty({ example: 'Bearer' }) token_type: string;

  @ApiProperty({ description: 'Seconds; left out for a key that does not end.', example: 7_776_000 })
  expires_in?: number;
}

class UserCodeQueryDto {
  @Text('As the device shows it.', { required: true, example: USER_CODE, maxLength: 64 }) user_code: string;
}

class DecideDeviceLoginDto extends UserCodeQueryDto {
  @Flag('False refuses the login.', { default: true, example: false }) approve?: boolean;
}

class DeviceLoginDto {
  @Shown('As the device shows it, however it was typed here.', USER_CODE) user_code: string;
  @Shown('What the device calls itself.', 'python-httpx/0.28.1') client: string;
  @Shown('Where its request came from, or that of the reverse proxy in front of the service.', '192.0.2.7')
  address: string;
  @Time() created_at: string;
}

const NO_SUCH_LOGIN = thrown(unknownLogin(), 'No device waits with this code');
const TOO_MANY_CODES = thrown(tooManyCodes(42), 'Many codes of this user in a minute');

/** RFC 8628, as `openhands login` speaks it. */
@ApiTags('API keys')
@Controller('oauth/device')
export class DeviceLoginsController {
  constructor(
    private readonly logins: DeviceLoginsService,
    private readonly address: ServiceAddress,
  ) {}

  @Public()
  @Post('authorize')
  @JsonBodyBounds(BODY)
  @ApiConsumes(...BODY_TYPES)
  @ApiRoute('begin_device_login', 'Begin the login of a device', {
    description: 'The device shows code and address to a person, who lets it in there within ten minutes.',
    answer: { type: DeviceCodesDto, description: 'The codes' },
    optionalBody: BeginDeviceLoginDto,
    problems: [thrown(tooManyLogins(), 'As many logins wait as may, of this address or of all')],
  })
  async begin(
    @Req() request: Request,
    @Headers('user-agent') program: string | undefined,
    @Body(new DefaultValuePipe({}), new InputValidationPipe(BeginDeviceLoginDto))
    { client_id: client }: Partial<BeginDeviceLoginDto>,
  ): Promise<DeviceCodesDto> {
    const { deviceCode, userCode } = await this.logins.begin(client ?? program ?? '');
    const page = `${this.address.urlFor(request)}/oauth/device/verify`;
    return {
      device_code: deviceCode,
      user_code: userCode,
      verification_uri: page,
      verification_uri_complete: `${page}?user_code=${userCode}`,
      expires_in: VALID_MS / 1000,
      interval: INTERVAL_SECONDS,
    };
  }

  @Public()
  @Post('token')
  @JsonBodyBounds(BODY)
  @ApiConsumes(...BODY_TYPES)
  @ApiRoute('fetch_device_key', 'Ask whether a device was let in', {
    description: 'Repeated by the device. The key is told once.',
    answer: { type: DeviceKeyDto, description: 'An API key of the person who approved it' },
    optionalBody: FetchDeviceKeyDto,
    problems: [
      thrown(deviceRefusal('invalid_grant'), 'No key, or not yet: `error` says why'),
      thrown(deviceRefusal('authorization_pending', INTERVAL_SECONDS)),
    ],
  })
  async fetch(
    @Body(new DefaultValuePipe({}), new InputValidationPipe(FetchDeviceKeyDto))
    { device_code: code, grant_type: grant }: Partial<FetchDeviceKeyDto>,
  ): Promise<DeviceKeyDto> {
    const { key, expiresInSeconds } = await this.logins.fetch(code, grant);
    return {
      access_token: key,
      token_type: 'Bearer',
      ...(expiresInSeconds !== null && { expires_in: expiresInSeconds }),
    };
  }

  @Get('login')
  @ApiRoute('get_device_login', 'Show which device waits with a code', {
    description: 'For the person who decides. A user may look at ten codes a minute.',
    answer: { type: DeviceLoginDto, description: 'The device' },
    problems: [NO_SUCH_LOGIN, TOO_MANY_CODES],
  })
  async show(@CurrentUser() user: AuthUser, @Query() query: UserCodeQueryDto): Promise<DeviceLoginDto> {
    const { client, address, createdAt } = await this.logins.find(user, query.user_code);
    return { user_code: shownCode(query.user_code), client, address, created_at: createdAt.toISOString() };
  }

  @Post('verify-authenticated')
  @JsonBodyBounds(BODY)
  @ApiConsumes(...BODY_TYPES)
  @ApiRoute('decide_device_login', 'Let a device in, or refuse it', {
    description: 'The device gets an API key of yours, which is listed and revoked like others.',
    answer: { type: SuccessDto, description: 'Decided' },
    examples: { refuse: { summary: 'Refuse', value: { user_code: USER_CODE, approve: false } } },
    problems: [
      NO_SUCH_LOGIN,
      TOO_MANY_CODES,
      documented(403, NO_CSRF_TOKEN, 'The token of the session is missing'),
      documented(409, 'A user may have 50 keys; revoke one first.', 'As many keys as may be'),
    ],
  })
  async decide(
    @CurrentUser() user: AuthUser,
    @Body() { user_code: code, approve = true }: DecideDeviceLoginDto,
  ): Promise<SuccessDto> {
    return succeeded(approve ? this.logins.approve(user, code) : this.logins.deny(user, code));
  }
}
