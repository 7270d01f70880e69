import { Body, Controller, Get, Param, Post } from '@nestjs/common';
import { ApiParam, ApiTags } from '@nestjs/swagger';
import { UserId } from '../../auth/auth.decorators.js';
import { found, unknownId } from '../../common/errors/domain-error.js';
import { ApiRoute, thrown } from '@slipway/api/openapi/api-route.js';
import { SandboxQueries } from '../sandboxes/sandbox.queries.js';
import { EgressPermitsService, refusedByOperator, withoutRules } from './egress-permits.service.js';
import { AllowEgressDto, EgressPermitDto, EgressRequestDto, toEgressRequestDto } from './egress.dto.js';
import { EgressRequestRepository } from './egress-request.repository.js';

const DESCRIPTION =
  'What programs in it asked for, newest first, at most 1,000; empty unless rules say what it may reach (`SANDBOX_EGRESS`). ' +
  'Requests appear within a few seconds.';

const ALLOW =
  'Lets the next request to a host pass, or over https the next connection, within ten minutes: where rules of the settings or of the start refuse ' +
  'it, but not those of the operator. Counts within five seconds.';

const SANDBOX_ID = {
  name: 'id',
  description: 'Id of the sandbox.',
  schema: { type: 'string' as const, maxLength: 64, example: '3Yv5mQ8hZk2LrTnBx7Wc0d' },
};

@ApiTags('Sandboxes')
@Controller('api/v1/sandboxes')
export class EgressController {
  constructor(
    private readonly sandboxes: SandboxQueries,
    private readonly requests: EgressRequestRepository,
    private readonly permits: EgressPermitsService,
  ) {}

  @Get(':id/egress/log')
  @ApiParam(SANDBOX_ID)
  @ApiRoute('list_egress_requests', 'List what a sandbox asked for', {
    description: DESCRIPTION,
    answer: { type: [EgressRequestDto], description: 'Requests, and connections that were passed through' },
    problems: [thrown(unknownId('sandbox'))],
  })
  async log(@UserId() userId: string, @Param('id') id: string): Promise<EgressRequestDto[]> {
    found(await this.sandboxes.find(userId, id), 'sandbox');
    return (await this.requests.list(id)).map(toEgressRequestDto);
  }

  @Post(':id/egress/allow')
  @ApiParam(SANDBOX_ID)
  @ApiRoute('allow_egress_once', 'Allow a request once', {
    description: ALLOW,
    answer: { type: EgressPermitDto, description: 'The host, and until when the request may be made' },
    problems: [
      thrown(unknownId('sandbox')),
      thrown(refusedByOperator('x'), 'The rules of the operator, or of the specification, refuse it.'),
      thrown(withoutRules(), 'It has no rules, or as many hosts are allowed once as may be.'),
    ],
  })
  async allow(
    @UserId() userId: string,
    @Param('id') id: string,
    @Body() { host }: AllowEgressDto,
  ): Promise<EgressPermitDto> {
    return await this.permits.allow(userId, id, host);
  }
}
