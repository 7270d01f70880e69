import { applyDecorators, Controller, Get, Query, UseGuards } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiSecurity, ApiTags } from '@nestjs/swagger';
import { AdminGuard } from '../../auth/auth.guard.js';
import { ApiProblems, invalidInput } from '../../common/openapi/problems.js';
import { AUDIT_ACTIONS } from '../audit-action.js';
import { AuditQueries } from '../audit.queries.js';
import { AuditPageDto, AuditQueryDto, toAuditFilter, toAuditPageDto } from './audit.dto.js';

const ACTIONS = Object.entries(AUDIT_ACTIONS)
  .map(([action, meaning]) => `- \`${action}\`: ${meaning}.`)
  .join('\n');

/** Documents `GET /api/v1/audit`. */
function SearchAuditOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'search_audit',
      summary: 'Who did what',
      description: `Administrators only. The newest entries first; filters are combined.

An entry is stored in the transaction of its change, and nothing changes it afterwards. It is kept for
\`AUDIT_RETENTION_DAYS\`, also when its user is removed. Actions:

${ACTIONS}`,
    }),
    ApiOkResponse({ type: AuditPageDto, description: 'A page of entries' }),
    ApiProblems(
      403,
      invalidInput(['query', 'since'], 'datetime_parsing', 'Expected a time such as 2030-01-31T12:00:00Z.'),
    ),
  );
}

@ApiTags('Audit')
@ApiSecurity('APIKeyHeader')
@UseGuards(AdminGuard)
@Controller('api/v1/audit')
export class AuditController {
  constructor(private readonly entries: AuditQueries) {}

  @Get()
  @SearchAuditOperation()
  async search(@Query() query: AuditQueryDto): Promise<AuditPageDto> {
    return toAuditPageDto(await this.entries.page(toAuditFilter(query), query.limit ?? 100, query.page_id));
  }
}
