import { buildSchema, type GraphQLSchema } from 'graphql';

/** Built once per worker, because that takes longer than most tests that ask for it. */
const built = new Map<boolean, GraphQLSchema>();

/**
 * The part of GitLab's schema that the service may rely on, with GitLab's names and nullability
 * (https://docs.gitlab.com/api/graphql/reference/). A query that asks for anything else fails, as it would there.
 */
export function gitlabSchema({ discussionCounts }: { discussionCounts: boolean }): GraphQLSchema {
  const schema = built.get(discussionCounts) ?? build(discussionCounts);
  built.set(discussionCounts, schema);
  return schema;
}

function build(discussionCounts: boolean): GraphQLSchema {
  return buildSchema(`
    scalar Time
    enum MergeRequestState { merged opened closed locked all }
    enum MergeRequestSort { CREATED_ASC CREATED_DESC UPDATED_ASC UPDATED_DESC MERGED_AT_DESC }
    enum MergeStatus { UNCHECKED CHECKING CAN_BE_MERGED CANNOT_BE_MERGED CANNOT_BE_MERGED_RECHECK }
    enum PipelineStatusEnum {
      CREATED WAITING_FOR_RESOURCE PREPARING PENDING RUNNING FAILED SUCCESS CANCELED SKIPPED MANUAL SCHEDULED
    }
    type PageInfo { hasNextPage: Boolean! hasPreviousPage: Boolean! startCursor: String endCursor: String }
    type Query {
      currentUser: CurrentUser
      projects(
        membership: Boolean, sort: String, search: String, ids: [ID!]
        after: String, before: String, first: Int, last: Int
      ): ProjectConnection
      queryComplexity: QueryComplexity
      project(fullPath: ID!): Project
    }
    type QueryComplexity { limit: Int score: Int }
    type CurrentUser {
      id: ID!
      username: String!
      name: String!
      authoredMergeRequests(
        state: MergeRequestState, sort: MergeRequestSort = CREATED_DESC
        after: String, before: String, first: Int, last: Int
      ): MergeRequestConnection
    }
    type MergeRequestConnection { nodes: [MergeRequest] pageInfo: PageInfo! count: Int! }
    type MergeRequest {
      id: ID!
      iid: String!
      title: String!
      draft: Boolean!
      state: MergeRequestState!
      webUrl: String
      diffHeadSha: String
      detailedMergeStatus: DetailedMergeStatus
      approvedBy(after: String, before: String, first: Int, last: Int): UserCoreConnection
      updatedAt: Time!
      conflicts: Boolean!
      mergeStatusEnum: MergeStatus
      project: Project!
      headPipeline: Pipeline
      discussions(after: String, before: String, first: Int, last: Int): DiscussionConnection!
      ${discussionCounts ? 'resolvableDiscussionsCount: Int resolvedDiscussionsCount: Int' : ''}
    }
    enum DetailedMergeStatus { MERGEABLE NOT_APPROVED REQUESTED_CHANGES CONFLICT DISCUSSIONS_NOT_RESOLVED }
    type UserCoreConnection { nodes: [UserCore] pageInfo: PageInfo! }
    type UserCore { id: ID! username: String! bot: Boolean! }
    type DiscussionConnection { nodes: [Discussion] pageInfo: PageInfo! }
    type Discussion {
      id: ID!
      resolvable: Boolean!
      resolved: Boolean!
      notes(after: String, before: String, first: Int, last: Int): NoteConnection!
    }
    type NoteConnection { nodes: [Note] pageInfo: PageInfo! }
    type Note {
      id: ID!
      system: Boolean!
      author: UserCore
      maxAccessLevelOfAuthor: String
      body: String!
      url: String
      createdAt: Time!
      position: DiffPosition
    }
    type DiffPosition { filePath: String! newLine: Int oldLine: Int }
    type Pipeline {
      id: ID!
      status: PipelineStatusEnum!
      jobs(retried: Boolean, after: String, before: String, first: Int, last: Int): CiJobConnection
    }
    enum CiJobStatus {
      CREATED WAITING_FOR_RESOURCE PREPARING PENDING RUNNING FAILED SUCCESS CANCELED SKIPPED MANUAL SCHEDULED
    }
    type CiJobConnection { nodes: [CiJob] pageInfo: PageInfo! }
    type CiJob { id: ID name: String status: CiJobStatus allowFailure: Boolean! webPath: String }
    type ProjectConnection { nodes: [Project] pageInfo: PageInfo! count: Int }
    type Project {
      id: ID!
      fullPath: ID!
      archived: Boolean
      lastActivityAt: Time
      userPermissions: ProjectPermissions!
      mergeRequest(iid: String!): MergeRequest
      repository: Repository
    }
    type ProjectPermissions { pushCode: Boolean! readProject: Boolean! }
    type Repository {
      empty: Boolean!
      exists: Boolean!
      rootRef: String
      tree(path: String = "", ref: String = "head", recursive: Boolean = false): Tree
    }
    type Tree {
      blobs(after: String, before: String, first: Int, last: Int): BlobConnection!
      trees(after: String, before: String, first: Int, last: Int): TreeEntryConnection!
    }
    type BlobConnection { nodes: [Blob] pageInfo: PageInfo! }
    type Blob { id: ID! name: String! path: String! }
    type TreeEntryConnection { nodes: [TreeEntry] pageInfo: PageInfo! }
    type TreeEntry { id: ID! name: String! path: String! }
  `);
}
