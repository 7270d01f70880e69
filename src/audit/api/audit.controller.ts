import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { AdministratorsOnly } from '../../auth/auth.guard.js';
import { ApiRoute } from '../../common/openapi/api-route.js';
import { toPageDto } from '../../common/pagination/page.dto.js';
import { AUDIT_ACTIONS } from '../audit-action.js';
import { AuditQueries } from '../audit.queries.js';
import { AuditPageDto, AuditQueryDto, toAuditEntryDto, toAuditFilter } from './audit.dto.js';

const DESCRIPTION = `Administrators only. The newest entries first; filters are combined.

An entry is stored in the transaction of its change, and nothing changes it afterwards. It is kept for
\`AUDIT_RETENTION_DAYS\`, also when its user is removed. Actions:

${Object.entries(AUDIT_ACTIONS)
  .map(([action, meaning]) => `- \`${action}\`: ${meaning}.`)
  .join('\n')}`;

@ApiTags('Audit')
@AdministratorsOnly()
@Controller('api/v1/audit')
export class AuditController {
  constructor(private readonly entries: AuditQueries) {}

  @Get()
  @ApiRoute('search_audit', 'Who did what', {
    description: DESCRIPTION,
    answer: { type: AuditPageDto, description: 'A page of entries' },
    invalid: 'since',
  })
  async search(@Query() query: AuditQueryDto): Promise<AuditPageDto> {
    const page = await this.entries.page(toAuditFilter(query), query.limit, query.page_id);
    return toPageDto(page, toAuditEntryDto);
  }
}
