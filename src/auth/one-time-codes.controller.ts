import { Body, Controller, Post, Req } from '@nestjs/common';
import { ApiProperty, ApiTags, PickType } from '@nestjs/swagger';
import type { Request } from 'express';
import { ApiRoute } from '@slipway/api/openapi/api-route.js';
import { JsonBodyBounds } from '@slipway/api/requests/json-body.interceptor.js';
import { Public } from './auth.decorators.js';
import { OneTimeCodes, UNUSABLE_CODE } from './one-time-codes.js';
import { FOREIGN_PAGE, RequestAuthenticator } from './request-authenticator.js';
import { ExchangeCodeDto } from './sessions/sessions.controller.js';
import { UserDto } from './users.dto.js';

class AccountDto extends PickType(UserDto, ['id', 'email']) {}

class ExchangedCodeDto {
  @ApiProperty({ example: 'slw_3fJ8kQ2a_…' }) api_key: string;
  @ApiProperty({ description: 'Whose key it is.' }) user: AccountDto;
}

/** Serves OpenHands' web application, which keeps keys itself; our console signs in by `POST /auth/code`. */
@ApiTags('API keys')
@Public()
@Controller('auth/code/key')
export class OneTimeCodesController {
  constructor(
    private readonly codes: OneTimeCodes,
    private readonly authenticator: RequestAuthenticator,
  ) {}

  @Post()
  @JsonBodyBounds({ bytes: 1_024 })
  @ApiRoute('exchange_code', 'Exchange the code of a link for the key it stands for', {
    description:
      'The link to the web application that a start prints on a terminal has such a code. It is valid once.',
    answer: { type: ExchangedCodeDto, description: 'The key, and whose it is' },
    problems: [
      { status: 401, detail: UNUSABLE_CODE, description: 'Unknown, used or expired' },
      { status: 403, detail: FOREIGN_PAGE, description: 'A page of another origin asks' },
    ],
  })
  async exchange(@Req() request: Request, @Body() { code }: ExchangeCodeDto): Promise<ExchangedCodeDto> {
    this.authenticator.requireOwnOrigin(request);
    const { key, user } = await this.codes.exchange(code, 'key');
    return { api_key: key, user: { id: user.id, email: user.email } };
  }
}
