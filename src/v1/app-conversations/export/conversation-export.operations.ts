import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { ApiProblems } from '../../../common/openapi/api-problems.decorator.js';
import { invalidInput } from '../../../common/openapi/documented-error.js';
import { UNKNOWN_CONVERSATION } from '../conversation-problems.js';

/** Documents `GET /api/v1/app-conversations/{id}/download`. */
export function DownloadOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'export_conversation',
      summary: 'Download a conversation',
      description:
        'A zip archive with `meta.json` and each stored event in a file of its own (`event_000000_….json`), also when the sandbox is gone.',
    }),
    ApiOkResponse({
      description: 'The archive',
      content: { 'application/zip': { schema: { type: 'string', format: 'binary' }, example: 'PK…' } },
    }),
    ApiProblems(
      UNKNOWN_CONVERSATION,
      invalidInput(['path', 'id'], 'string_unicode', 'Expected text without NUL characters.'),
    ),
  );
}
