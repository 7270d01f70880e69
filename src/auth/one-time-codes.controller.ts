import { Body, Controller, Header, Headers, Post } from '@nestjs/common';
import { ApiProperty, ApiTags } from '@nestjs/swagger';
import { DomainError } from '../common/errors/domain-error.js';
import { ApiRoute } from '../common/openapi/api-route.js';
import { JsonBodyBounds } from '../common/requests/json-body.interceptor.js';
import { Text } from '../common/validation/text-fields.js';
import { ServiceAddress } from '../config/service-address.js';
import { Public } from './auth.decorators.js';
import { OneTimeCodes, UNUSABLE_CODE } from './one-time-codes.js';

const FOREIGN_PAGE = 'Only pages of the service itself exchange codes.';
const NO_CODE = 'Expected the 43 letters, digits, - and _ of a code.';
const CODE = 'jTq0mJ0cV4mXQm2y8b1u3bZ6r9d5fQw7eTn2sLxK4aU';

class ExchangeCodeDto {
  @Text('From the link that the service printed when it was started.', {
    required: true,
    example: CODE,
    maxLength: 43,
    pattern: { regex: /^[\w-]{43}$/, expected: NO_CODE },
  })
  code: string;
}

class AccountDto {
  @ApiProperty({ format: 'uuid', example: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f' }) id: string;
  @ApiProperty({ example: 'ada@example.com' }) email: string;
}

class ExchangedCodeDto {
  @ApiProperty({ example: 'slw_3fJ8kQ2a_…' }) api_key: string;
  @ApiProperty({ description: 'Whose key it is.' }) user: AccountDto;
}

/** Connects the browser that opens the link of a start. */
@ApiTags('API keys')
@Public()
@Controller('auth/code')
export class OneTimeCodesController {
  constructor(
    private readonly codes: OneTimeCodes,
    private readonly address: ServiceAddress,
  ) {}

  @Post()
  @JsonBodyBounds({ bytes: 1_024 })
  @Header('Cache-Control', 'no-store')
  @ApiRoute('exchange_code', 'Exchange the code of a link for the key it stands for', {
    description:
      'The link to the web application that a start prints on a terminal has such a code. It is valid once.',
    answer: { type: ExchangedCodeDto, description: 'The key, and whose it is' },
    examples: { link: { summary: 'The code of a link', value: { code: CODE } } },
    problems: [
      { status: 401, detail: UNUSABLE_CODE, description: 'Unknown, used or expired' },
      { status: 403, detail: FOREIGN_PAGE, description: 'A page of another origin asks' },
    ],
  })
  async exchange(
    @Headers('origin') origin: string | undefined,
    @Body() { code }: ExchangeCodeDto,
  ): Promise<ExchangedCodeDto> {
    // Programs send no origin.
    if (origin !== undefined && !this.address.isOwn(origin)) {
      throw new DomainError('forbidden', 'forbidden', FOREIGN_PAGE);
    }
    const { key, user } = await this.codes.exchange(code);
    return { api_key: key, user: { id: user.id, email: user.email } };
  }
}
