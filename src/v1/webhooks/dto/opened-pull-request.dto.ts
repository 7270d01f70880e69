import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import type { OpenedChangeRequest } from '../../../git-providers/git-provider.types.js';

/** Answer of `POST /api/v1/webhooks/pull-requests`. */
@ApiSchema({ name: 'OpenedPullRequest' })
export class OpenedPullRequestDto implements OpenedChangeRequest {
  @ApiProperty({ type: 'integer', example: 17 })
  number: number;

  @ApiProperty({ format: 'uri', example: 'https://github.com/octo/app/pull/17' })
  url: string;
}
