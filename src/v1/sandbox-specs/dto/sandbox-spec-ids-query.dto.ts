import { RepeatedText } from '../../../common/validation/repeated-text.decorator.js';

/** Query of `GET /api/v1/sandbox-specs`. */
export class SandboxSpecIdsQueryDto {
  @RepeatedText({
    description: 'Id of a specification; repeat it for more, at most 100.',
    required: true,
    most: 100,
    example: ['slipway'],
  })
  id: string[];
}
