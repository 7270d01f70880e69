import { Controller, Get, Param } from '@nestjs/common';
import { ApiParam, ApiTags } from '@nestjs/swagger';
import { UserId } from '../../auth/auth.decorators.js';
import { found, unknownId } from '../../common/errors/domain-error.js';
import { ApiRoute, thrown } from '../../common/openapi/api-route.js';
import { SandboxQueries } from '../sandboxes/sandbox.queries.js';
import { EgressRequestDto, toEgressRequestDto } from './egress.dto.js';
import { EgressRequestRepository } from './egress-request.repository.js';

const DESCRIPTION =
  'What programs in it asked for, newest first, at most 1,000; empty unless rules say what it may reach (`SANDBOX_EGRESS`). ' +
  'Requests appear within a few seconds.';

@ApiTags('Sandboxes')
@Controller('api/v1/sandboxes')
export class EgressController {
  constructor(
    private readonly sandboxes: SandboxQueries,
    private readonly requests: EgressRequestRepository,
  ) {}

  @Get(':id/egress/log')
  @ApiParam({
    name: 'id',
    description: 'Id of the sandbox.',
    schema: { type: 'string', maxLength: 64, example: '3Yv5mQ8hZk2LrTnBx7Wc0d' },
  })
  @ApiRoute('list_egress_requests', 'List what a sandbox asked for', {
    description: DESCRIPTION,
    answer: { type: [EgressRequestDto], description: 'Requests, and connections that were passed through' },
    problems: [thrown(unknownId('sandbox'))],
  })
  async log(@UserId() userId: string, @Param('id') id: string): Promise<EgressRequestDto[]> {
    found(await this.sandboxes.find(userId, id), 'sandbox');
    return (await this.requests.list(id)).map(toEgressRequestDto);
  }
}
