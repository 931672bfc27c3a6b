// The stores: the requests of the mock of TiKV's client, alone and in the batches of a stream.

package mock

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/pingcap/kvproto/pkg/tikvpb"
	"github.com/tikv/client-go/v2/testutils"
	"github.com/tikv/client-go/v2/tikvrpc"
)

// requestLimit is the mock's own, which it ignores.
const requestLimit = time.Minute

// shared is what all stores have in common: there are no copies.
type shared struct {
	client  *testutils.MockClient
	cluster *testutils.MockCluster

	lock sync.Mutex // of raw requests
	ends map[string]time.Time
	// hasTransactions is set by the first one.
	hasTransactions atomic.Bool
}

type store struct {
	tikvpb.UnimplementedTikvServer
	*shared
	address string
}

// asked is a request of TiKV.
type asked interface{ GetContext() *kvrpcpb.Context }

// answer passes a request to the mock.
func answer[T any](ctx context.Context, s *store, kind tikvrpc.CmdType, request asked) (T, error) {
	var none T
	place := kvrpcpb.Context{}
	if given := request.GetContext(); given != nil {
		place = *given
	}
	got, err := s.client.SendRequest(ctx, s.address, tikvrpc.NewRequest(kind, request, place), requestLimit)
	if err != nil {
		return none, err
	}
	made, is := got.Resp.(T)
	if !is {
		return none, fmt.Errorf("the mock answers %v with %T", kind, got.Resp)
	}
	return made, nil
}

// The requests of transactions.

func (s *store) KvGet(ctx context.Context, r *kvrpcpb.GetRequest) (*kvrpcpb.GetResponse, error) {
	return answer[*kvrpcpb.GetResponse](ctx, s, tikvrpc.CmdGet, r)
}

func (s *store) KvScan(ctx context.Context, r *kvrpcpb.ScanRequest) (*kvrpcpb.ScanResponse, error) {
	return answer[*kvrpcpb.ScanResponse](ctx, s, tikvrpc.CmdScan, r)
}

func (s *store) KvPrewrite(ctx context.Context, r *kvrpcpb.PrewriteRequest) (*kvrpcpb.PrewriteResponse, error) {
	s.hasTransactions.Store(true)
	return answer[*kvrpcpb.PrewriteResponse](ctx, s, tikvrpc.CmdPrewrite, r)
}

func (s *store) KvCommit(ctx context.Context, r *kvrpcpb.CommitRequest) (*kvrpcpb.CommitResponse, error) {
	return answer[*kvrpcpb.CommitResponse](ctx, s, tikvrpc.CmdCommit, r)
}

func (s *store) KvCleanup(ctx context.Context, r *kvrpcpb.CleanupRequest) (*kvrpcpb.CleanupResponse, error) {
	return answer[*kvrpcpb.CleanupResponse](ctx, s, tikvrpc.CmdCleanup, r)
}

func (s *store) KvBatchGet(ctx context.Context, r *kvrpcpb.BatchGetRequest) (*kvrpcpb.BatchGetResponse, error) {
	return answer[*kvrpcpb.BatchGetResponse](ctx, s, tikvrpc.CmdBatchGet, r)
}

func (s *store) KvBatchRollback(ctx context.Context, r *kvrpcpb.BatchRollbackRequest) (*kvrpcpb.BatchRollbackResponse, error) {
	return answer[*kvrpcpb.BatchRollbackResponse](ctx, s, tikvrpc.CmdBatchRollback, r)
}

func (s *store) KvScanLock(ctx context.Context, r *kvrpcpb.ScanLockRequest) (*kvrpcpb.ScanLockResponse, error) {
	return answer[*kvrpcpb.ScanLockResponse](ctx, s, tikvrpc.CmdScanLock, r)
}

func (s *store) KvResolveLock(ctx context.Context, r *kvrpcpb.ResolveLockRequest) (*kvrpcpb.ResolveLockResponse, error) {
	return answer[*kvrpcpb.ResolveLockResponse](ctx, s, tikvrpc.CmdResolveLock, r)
}

func (s *store) KvCheckTxnStatus(ctx context.Context, r *kvrpcpb.CheckTxnStatusRequest) (*kvrpcpb.CheckTxnStatusResponse, error) {
	return answer[*kvrpcpb.CheckTxnStatusResponse](ctx, s, tikvrpc.CmdCheckTxnStatus, r)
}

func (s *store) KvTxnHeartBeat(ctx context.Context, r *kvrpcpb.TxnHeartBeatRequest) (*kvrpcpb.TxnHeartBeatResponse, error) {
	return answer[*kvrpcpb.TxnHeartBeatResponse](ctx, s, tikvrpc.CmdTxnHeartBeat, r)
}

func (s *store) KvDeleteRange(ctx context.Context, r *kvrpcpb.DeleteRangeRequest) (*kvrpcpb.DeleteRangeResponse, error) {
	return answer[*kvrpcpb.DeleteRangeResponse](ctx, s, tikvrpc.CmdDeleteRange, r)
}

// The raw requests. The mock has no times to live, its compare-and-swap knows no key that is absent, and several keys are read as if
// none were absent: these are made here.

func (s *store) RawGet(ctx context.Context, r *kvrpcpb.RawGetRequest) (*kvrpcpb.RawGetResponse, error) {
	defer s.expired(ctx).Unlock()
	return answer[*kvrpcpb.RawGetResponse](ctx, s, tikvrpc.CmdRawGet, r)
}

func (s *store) RawBatchGet(ctx context.Context, r *kvrpcpb.RawBatchGetRequest) (*kvrpcpb.RawBatchGetResponse, error) {
	defer s.expired(ctx).Unlock()
	// TiKV does not mention keys that are absent; the mock gives those that were deleted a value of no bytes.
	found := &kvrpcpb.RawBatchGetResponse{}
	for _, key := range r.Keys {
		one, err := answer[*kvrpcpb.RawGetResponse](ctx, s, tikvrpc.CmdRawGet, &kvrpcpb.RawGetRequest{Context: r.Context, Key: key, Cf: r.Cf})
		if err != nil || one.RegionError != nil {
			return &kvrpcpb.RawBatchGetResponse{RegionError: one.GetRegionError()}, err
		}
		if !one.NotFound {
			found.Pairs = append(found.Pairs, &kvrpcpb.KvPair{Key: key, Value: one.Value})
		}
	}
	return found, nil
}

func (s *store) RawPut(ctx context.Context, r *kvrpcpb.RawPutRequest) (*kvrpcpb.RawPutResponse, error) {
	defer s.expired(ctx).Unlock()
	done, err := answer[*kvrpcpb.RawPutResponse](ctx, s, tikvrpc.CmdRawPut, r)
	if err == nil && done.RegionError == nil {
		s.lives(r.Key, r.Ttl)
	}
	return done, err
}

func (s *store) RawBatchPut(ctx context.Context, r *kvrpcpb.RawBatchPutRequest) (*kvrpcpb.RawBatchPutResponse, error) {
	defer s.expired(ctx).Unlock()
	done, err := answer[*kvrpcpb.RawBatchPutResponse](ctx, s, tikvrpc.CmdRawBatchPut, r)
	if err == nil && done.RegionError == nil {
		for i, each := range r.Pairs {
			if i < len(r.Ttls) {
				s.lives(each.Key, r.Ttls[i])
			} else {
				s.lives(each.Key, 0)
			}
		}
	}
	return done, err
}

func (s *store) RawDelete(ctx context.Context, r *kvrpcpb.RawDeleteRequest) (*kvrpcpb.RawDeleteResponse, error) {
	defer s.expired(ctx).Unlock()
	return answer[*kvrpcpb.RawDeleteResponse](ctx, s, tikvrpc.CmdRawDelete, r)
}

func (s *store) RawBatchDelete(ctx context.Context, r *kvrpcpb.RawBatchDeleteRequest) (*kvrpcpb.RawBatchDeleteResponse, error) {
	defer s.expired(ctx).Unlock()
	return answer[*kvrpcpb.RawBatchDeleteResponse](ctx, s, tikvrpc.CmdRawBatchDelete, r)
}

func (s *store) RawDeleteRange(ctx context.Context, r *kvrpcpb.RawDeleteRangeRequest) (*kvrpcpb.RawDeleteRangeResponse, error) {
	defer s.expired(ctx).Unlock()
	return answer[*kvrpcpb.RawDeleteRangeResponse](ctx, s, tikvrpc.CmdRawDeleteRange, r)
}

func (s *store) RawScan(ctx context.Context, r *kvrpcpb.RawScanRequest) (*kvrpcpb.RawScanResponse, error) {
	if r.Cf == "write" {
		return s.writes(), nil
	}
	defer s.expired(ctx).Unlock()
	return answer[*kvrpcpb.RawScanResponse](ctx, s, tikvrpc.CmdRawScan, r)
}

func (s *store) RawCompareAndSwap(ctx context.Context, r *kvrpcpb.RawCASRequest) (*kvrpcpb.RawCASResponse, error) {
	defer s.expired(ctx).Unlock()
	if !r.PreviousNotExist {
		return answer[*kvrpcpb.RawCASResponse](ctx, s, tikvrpc.CmdRawCompareAndSwap, r)
	}
	old, err := answer[*kvrpcpb.RawGetResponse](ctx, s, tikvrpc.CmdRawGet, &kvrpcpb.RawGetRequest{Context: r.Context, Key: r.Key, Cf: r.Cf})
	if err != nil {
		return nil, err
	}
	if old.RegionError != nil || !old.NotFound {
		return &kvrpcpb.RawCASResponse{RegionError: old.RegionError, PreviousValue: old.Value}, nil
	}
	put := &kvrpcpb.RawPutRequest{Context: r.Context, Key: r.Key, Value: r.Value, Cf: r.Cf}
	done, err := answer[*kvrpcpb.RawPutResponse](ctx, s, tikvrpc.CmdRawPut, put)
	if err != nil {
		return nil, err
	}
	s.lives(r.Key, 0)
	return &kvrpcpb.RawCASResponse{RegionError: done.RegionError, Error: done.Error, Succeed: done.Error == "", PreviousNotExist: true}, nil
}

// writes are the rows of the column family in which TiKV has the commits of transactions. The mock has none such: a row stands for all.
func (s *shared) writes() *kvrpcpb.RawScanResponse {
	found := &kvrpcpb.RawScanResponse{}
	if s.hasTransactions.Load() {
		found.Kvs = append(found.Kvs, &kvrpcpb.KvPair{Key: []byte("commit")})
	}
	return found
}

// lives notes when a row ends; 0 seconds: never.
func (s *shared) lives(key []byte, seconds uint64) {
	if seconds == 0 {
		delete(s.ends, string(key))
	} else {
		s.ends[string(key)] = time.Now().Add(time.Duration(seconds) * time.Second)
	}
}

// expired locks the raw rows, after it has deleted those whose time is over.
func (s *shared) expired(ctx context.Context) *sync.Mutex {
	s.lock.Lock()
	now := time.Now()
	for key, end := range s.ends {
		if now.Before(end) {
			continue
		}
		delete(s.ends, key)
		region, leader, _ := s.cluster.GetRegionByKey([]byte(key))
		own := &store{shared: s, address: s.cluster.GetStore(leader.StoreId).Address}
		place := &kvrpcpb.Context{RegionId: region.Id, RegionEpoch: region.RegionEpoch, Peer: leader}
		_, _ = answer[*kvrpcpb.RawDeleteResponse](ctx, own, tikvrpc.CmdRawDelete, &kvrpcpb.RawDeleteRequest{Context: place, Key: []byte(key)})
	}
	return &s.lock
}

// calls are the store's methods by the type of their request, and kinds the fields of an answer in a batch by its type.
var calls, kinds = map[reflect.Type]int{}, map[reflect.Type]reflect.Type{}

func init() {
	own := reflect.TypeFor[*store]()
	for i := range own.NumMethod() {
		if method := own.Method(i).Type; method.NumIn() == 3 && method.NumOut() == 2 {
			calls[method.In(2)] = i
		}
	}
	for _, each := range (*tikvpb.BatchCommandsResponse_Response)(nil).XXX_OneofWrappers() {
		kind := reflect.TypeOf(each).Elem()
		kinds[kind.Field(0).Type] = kind
	}
}

// BatchCommands answers the requests of a stream, which the client sends together.
func (s *store) BatchCommands(stream tikvpb.Tikv_BatchCommandsServer) error {
	var sending sync.Mutex
	var running sync.WaitGroup
	defer running.Wait()
	for {
		batch, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for i, each := range batch.Requests {
			number := batch.RequestIds[i]
			running.Go(func() {
				got, err := s.command(stream.Context(), each)
				if err != nil {
					return // the client sees that its time is over
				}
				sending.Lock()
				defer sending.Unlock()
				_ = stream.Send(&tikvpb.BatchCommandsResponse{Responses: []*tikvpb.BatchCommandsResponse_Response{got},
					RequestIds: []uint64{number}}) // fails only if the client is gone
			})
		}
	}
}

func (s *store) command(ctx context.Context, one *tikvpb.BatchCommandsRequest_Request) (*tikvpb.BatchCommandsResponse_Response, error) {
	if one.Cmd == nil {
		return nil, fmt.Errorf("an empty request")
	}
	if empty := one.GetEmpty(); empty != nil {
		return &tikvpb.BatchCommandsResponse_Response{Cmd: &tikvpb.BatchCommandsResponse_Response_Empty{
			Empty: &tikvpb.BatchCommandsEmptyResponse{TestId: empty.TestId}}}, nil
	}
	request := reflect.ValueOf(one.Cmd).Elem().Field(0)
	call, isKnown := calls[request.Type()]
	if !isKnown {
		return nil, fmt.Errorf("a request of type %v", request.Type())
	}
	got := reflect.ValueOf(s).Method(call).Call([]reflect.Value{reflect.ValueOf(ctx), request})
	if err, failed := got[1].Interface().(error); failed {
		return nil, err
	}
	made := reflect.New(kinds[got[0].Type()])
	made.Elem().Field(0).Set(got[0])
	answer := &tikvpb.BatchCommandsResponse_Response{}
	reflect.ValueOf(answer).Elem().FieldByName("Cmd").Set(made)
	return answer, nil
}
